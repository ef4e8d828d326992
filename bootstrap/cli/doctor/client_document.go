package doctor

import ()

// clientDocuments chooses the client document of a login, and closes the server of one that this
// computer serves.
type clientDocuments struct {
	o      doctorOptions
	served *Client
}

// choose takes the document at --client-id or, with --certificate, one that it serves. Without
// both, doctor looks for one that the server publishes.
func (d *clientDocuments) choose(examined *Options) (err error) {
	examined.Client = &Client{ID: d.o.clientID}
	switch {
	case d.o.token == "" || d.o.clientID != "":
	case d.o.servesDocument:
		examined.Client, err = d.serve()
	case IsLoopback(examined.Endpoint):
		examined.Serve = d.serve
	}
	return err
}

func (d *clientDocuments) serve() (*Client, error) {
	certificate, err := readCertificate(d.o.certificate)
	if err != nil {
		return nil, err
	}
	d.served, err = ServeClient(certificate, d.o.certificate)
	return d.served, err
}

func (d *clientDocuments) close() error {
	if d.served == nil {
		return nil
	}
	return d.served.Close()
}
