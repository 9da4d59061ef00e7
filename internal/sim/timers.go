package sim

// timers is a heap of sequences, earliest due first, and of equals the one that was set first.
type timers struct {
	heap []*sequence
	set  uint64 // times set so far
}

func (t *timers) next() (at int64, ok bool) {
	if len(t.heap) == 0 {
		return 0, false
	}
	return t.heap[0].due, true
}

// add sets the timer of q to its due time.
func (t *timers) add(q *sequence) {
	t.set++
	q.order = t.set
	t.heap = append(t.heap, q)
	t.up(len(t.heap)-1, q)
}

// remove takes the timer of q away, if it is set.
func (t *timers) remove(q *sequence) {
	i := q.place - 1
	if i < 0 {
		return
	}
	q.place = 0
	last := len(t.heap) - 1
	moved := t.heap[last]
	t.heap[last] = nil
	t.heap = t.heap[:last]
	if i == last {
		return
	}
	t.down(i, moved)
	if t.heap[i] == moved {
		t.up(i, moved)
	}
}

// pop takes the earliest sequence whose time has come.
func (t *timers) pop(now int64) (*sequence, bool) {
	if len(t.heap) == 0 || t.heap[0].due > now {
		return nil, false
	}
	q := t.heap[0]
	t.remove(q)
	return q, true
}

func (q *sequence) before(o *sequence) bool {
	return q.due < o.due || q.due == o.due && q.order < o.order
}

func (t *timers) put(i int, q *sequence) {
	t.heap[i] = q
	q.place = i + 1
}

func (t *timers) up(i int, q *sequence) {
	for i > 0 {
		parent := (i - 1) / 2
		if !q.before(t.heap[parent]) {
			break
		}
		t.put(i, t.heap[parent])
		i = parent
	}
	t.put(i, q)
}

func (t *timers) down(i int, q *sequence) {
	for {
		child := 2*i + 1
		if child >= len(t.heap) {
			break
		}
		if child+1 < len(t.heap) && t.heap[child+1].before(t.heap[child]) {
			child++
		}
		if !t.heap[child].before(q) {
			break
		}
		t.put(i, t.heap[child])
		i = child
	}
	t.put(i, q)
}
