package plan

import "encoding/json"

// BodyFacts say what is known of the bodies of the requests made so far, later turns left out.
type BodyFacts struct {
	Made     int64
	Silent   int64 // of them, whole bodies of a data set that leave temperature or top_p to the server
	Compared int64 // of them, those that were compared with each other: all, or of many a sample by what they say
	Repeated int64 // of the compared, those that say what one before said
}

// Bodies returns what is known of the bodies of the requests made so far.
func (w *Walker) Bodies() BodyFacts {
	f := w.said
	f.Compared, f.Repeated = w.repeats.count()
	return f
}

// heed looks at a body that was not written here.
func (f *BodyFacts) heed(body []byte) {
	var says struct {
		Temperature json.RawMessage `json:"temperature"`
		TopP        json.RawMessage `json:"top_p"`
	}
	if json.Unmarshal(body, &says) != nil || says.Temperature == nil || says.TopP == nil {
		f.Silent++
	}
}

// mostCompared bounds the memory that repeats take.
const mostCompared = 4096

// repeats counts things that come again, by hashes of them. Of more than it can hold it keeps those whose hash ends in zeros, with all
// their repetitions, so that the share of repetitions stays what it is: distinct sampling (P. Gibbons, VLDB 2001). The zero value is empty.
type repeats struct {
	times map[uint64]int64 // by hash
	mask  uint64           // bits that must be zero in a hash
}

func (r *repeats) add(hash uint64) {
	if hash&r.mask != 0 {
		return
	}
	if r.times == nil {
		r.times = make(map[uint64]int64)
	}
	r.times[hash]++
	for len(r.times) > mostCompared {
		r.mask = r.mask<<1 | 1
		for h := range r.times {
			if h&r.mask != 0 {
				delete(r.times, h)
			}
		}
	}
}

func (r *repeats) count() (compared, repeated int64) {
	for _, n := range r.times {
		compared += n
		repeated += n - 1
	}
	return compared, repeated
}
