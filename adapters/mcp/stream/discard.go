package stream

import "net/http"

// discarded is a response that is dropped.
type discarded struct{ header http.Header }

// Discard returns a response that is dropped, for a message that the client has not sent. It has a
// copy of the headers of w, because one of them has the id of the request.
func Discard(w http.ResponseWriter) http.ResponseWriter { return discarded{w.Header().Clone()} }

func (d discarded) Header() http.Header { return d.header }

func (discarded) WriteHeader(int) {}

func (discarded) Write(p []byte) (int, error) { return len(p), nil }

// FlushError is called by http.ResponseController.
func (discarded) FlushError() error { return nil }
