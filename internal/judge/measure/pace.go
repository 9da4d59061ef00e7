package measure

import "time"

// Pace is when a user wants tokens: the first one First after the send, or after the due time, and from then on one Each.
type Pace struct {
	First, Each time.Duration // above 0
	FromDue     bool
}

func (p Pace) origin(r *Reply) time.Duration {
	if p.FromDue {
		return r.Due
	}
	return r.Sent
}

// Deadlines counts the token deadlines that a reply met and missed, as the fluidity-index has it (Agrawal et al. 2024, arXiv 2407.07000, and
// Etalon's code): a token has Each, the first one First, and what earlier tokens left over. One that comes later misses as many
// deadlines as have passed, and the next one begins anew. ok is false where the reply's tokens are not known.
func (p Pace) Deadlines(r *Reply) (met, missed int64, ok bool) {
	before, slack := p.origin(r), time.Duration(0)
	due := p.First
	r.EachToken(func(at time.Duration, tokens int64) {
		if tokens <= 0 {
			return
		}
		took := at - before
		switch {
		case took <= due+slack:
			met, slack = met+1, slack+due-took
		case !ok: // the first token
			missed, slack = missed+1+int64((took-due)/p.Each), 0
		default:
			missed, slack = missed+int64((took-slack)/p.Each), 0
		}
		met += tokens - 1 // they came with it
		slack += time.Duration(tokens-1) * p.Each
		before, due, ok = at, p.Each, true
	})
	return met, missed, ok
}

// Benefit is what a reply's tokens were worth to its user, in tokens: how many came, less those that could have been read while waiting for the
// latest of them (Wang et al. 2024, arXiv 2410.14257, with d_i = First + (i−1)·Each, f(l) = l/Each and α = 1), and not below 0, so that
// giving a late reply up gains nothing. It counts what came of replies that failed too. ok is false where the tokens are not known.
func (p Pace) Benefit(r *Reply) (tokens float64, ok bool) {
	n, idle := int64(0), time.Duration(0)
	origin := p.origin(r)
	r.EachToken(func(at time.Duration, tokens int64) {
		if tokens > 0 {
			idle = max(idle, at-origin-p.First-time.Duration(n)*p.Each)
			n += tokens
		}
	})
	return max(float64(n)-float64(idle)/float64(p.Each), 0), n > 0
}
