package dialect

func newResponses(Options) Dialect { return nil }
func newAnthropic(Options) Dialect { return nil }
func newGemini(Options) Dialect    { return nil }
func newTGI(Options) Dialect       { return nil }
func newLlamaCpp(Options) Dialect  { return nil }
func newSGLang(Options) Dialect    { return nil }
func newTriton(Options) Dialect    { return nil }
func newOllama(Options) Dialect    { return nil }
