package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// UpstreamCheckPrefix begins the name of the check of an upstream; the URL of its resource follows.
const UpstreamCheckPrefix = "upstream of "

// ProxiesCheck is the name of the check that has a remedy when trusted-proxies lacks a proxy.
const ProxiesCheck = "proxies"

// Readiness is the body of /readyz. ReadReport reads it for the commands health and doctor.
type Readiness struct {
	Status string   `json:"status"`
	Checks []Result `json:"checks,omitempty"`

	Ready bool `json:"-"` // the response had status 200
}

// Result is the result of a check; Problem is empty when it passed.
type Result struct {
	Name    string `json:"name"`
	Problem string `json:"problem,omitempty"`
	Description
}

// Description is what else is known about the subject of a check.
type Description struct {
	State  string `json:"state,omitempty"`  // one word of a fixed list
	Detail string `json:"detail,omitempty"` // left out of a failed check, whose problem contains it
	Remedy string `json:"remedy,omitempty"`
	Brief  string `json:"-"` // the problem without a detail, for readers on other computers
}

// ReadReport reads the report of the admin listener at host:port.
func ReadReport(ctx context.Context, address string) (read Readiness, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second) // each check takes at most 2s
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return read, errors.New("the address is not valid: write host:port")
	}
	request.Host = "localhost"                                                  // accepted on every listen address
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy of the environment
	response, err := client.Do(request)
	if err != nil {
		return read, err
	}
	defer response.Body.Close()
	err = json.NewDecoder(io.LimitReader(response.Body, 256<<10)).Decode(&read)
	if err != nil || read.Status == "" {
		return read, fmt.Errorf("it answered %s and is not an admin listener of pasteport", response.Status)
	}
	read.Ready = response.StatusCode == http.StatusOK
	return read, nil
}
