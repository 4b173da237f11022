// Baselines of a matrix: the same transfers over TCP, QUIC and HTTPS alone, and by iperf3.
package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"

	"weighbridge.local/endpoint"
)

// baselines by the name of their transport
var baselines = map[string]endpoint.Implementation{
	"tcp":    {Listen: listenTCP, Prepare: prepareTCP},
	"quic":   {Listen: listenQUIC, Prepare: prepareQUIC},
	"https":  {Listen: listenHTTPS, Prepare: prepareHTTPS},
	"iperf3": {Listen: listenIperf3, Prepare: prepareIperf3},
}

func main() {
	endpoint.Main(endpoint.Implementation{
		Listen: func(ctx context.Context, options endpoint.Options) error {
			baseline, err := find(options)
			if err != nil {
				return err
			}
			return baseline.Listen(ctx, options)
		},
		Prepare: func(options endpoint.Options) (endpoint.Connect, error) {
			baseline, err := find(options)
			if err != nil {
				return nil, err
			}
			return baseline.Prepare(options)
		},
		// The end of a TCP connection is the end of its only transfer.
		ConnectsPerTransfer: func(options endpoint.Options) bool { return options.Transport == "tcp" },
	})
}

func find(options endpoint.Options) (endpoint.Implementation, error) {
	return endpoint.Choose("transport", options.Transport, baselines)
}

// connection is one to which only its transport applies.
type connection struct {
	transport string
	transfer  func(ctx context.Context, options endpoint.Options, counts *endpoint.Counts) error
	close     func()
}

func (c *connection) Negotiated() endpoint.Negotiated {
	return endpoint.Negotiated{Transport: c.transport}
}

func (c *connection) Transfer(ctx context.Context, options endpoint.Options, counts *endpoint.Counts) error {
	return c.transfer(ctx, options, counts)
}

func (c *connection) Close() { c.close() }

// address is a URL whose fragment is the certificate's fingerprint, where there is a certificate.
func address(scheme, host string, local net.Addr, fingerprint string) string {
	// Go listens on [::] for 0.0.0.0, which would be a different address for the dialer.
	_, port, _ := net.SplitHostPort(local.String())
	return (&url.URL{Scheme: scheme, Host: net.JoinHostPort(host, port), Fragment: fingerprint}).String()
}

func parseAddress(text, scheme string) (host, fingerprint string, err error) {
	address, err := url.Parse(text)
	if err != nil || address.Scheme != scheme || address.Port() == "" {
		return "", "", fmt.Errorf("invalid address `%s`: expected %s://HOST:PORT", text, scheme)
	}
	return address.Host, address.Fragment, nil
}

func hostPort(options endpoint.Options) string {
	return net.JoinHostPort(options.Host, strconv.Itoa(options.Port))
}
