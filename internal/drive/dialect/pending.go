package dialect

func newResponses(Options) Dialect { return nil }
func newAnthropic(Options) Dialect { return nil }
func newGemini(Options) Dialect    { return nil }
