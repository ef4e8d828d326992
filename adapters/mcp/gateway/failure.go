package gateway

// Failure is the error of an Upstream without a usable response.
type Failure struct {
	Status     int    // of the response to the client: 502, 503 or 504
	Rule       string // its number
	Text       string // for the client
	Cause      error  // for the log
	RetryAfter string // that the upstream has named; "" for none
}

// Error implements error.
func (f *Failure) Error() string { return f.Text }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }
