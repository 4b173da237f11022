package main

import (
	"context"
	"net"

	"weighbridge.local/endpoint"
)

func listenTCP(ctx context.Context, options endpoint.Options) error {
	listener, err := net.Listen("tcp", hostPort(options))
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { listener.Close() })
	endpoint.PrintListening(address("tcp", options.Host, listener.Addr(), ""))
	for {
		stream, err := listener.Accept()
		if err != nil {
			return err
		}
		endpoint.PrintNegotiated(endpoint.Negotiated{Transport: "tcp"})
		go func() {
			defer stream.Close()
			var counts endpoint.Counts
			err := endpoint.Answer(stream.(*net.TCPConn), &counts)
			endpoint.PrintServed(counts, err)
		}()
	}
}

func prepareTCP(options endpoint.Options) (endpoint.Connect, error) {
	host, _, err := parseAddress(options.Address, "tcp")
	return func(ctx context.Context) (endpoint.Connection, error) {
		var dialer net.Dialer
		stream, err := dialer.DialContext(ctx, "tcp", host)
		if err != nil {
			return nil, err
		}
		return &connection{
			transport: "tcp",
			transfer: func(ctx context.Context, options endpoint.Options, counts *endpoint.Counts) error {
				return endpoint.Request(ctx, stream.(*net.TCPConn), options, counts)
			},
			close: func() { stream.Close() },
		}, nil
	}, err
}
