package main

import (
	"context"

	"github.com/quic-go/quic-go"
	"weighbridge.local/endpoint"
)

const perfProtocol = "weighbridge-perf"

// quicStream is a stream whose Close ends only its own direction.
type quicStream struct{ *quic.Stream }

func (s quicStream) CloseWrite() error { return s.Close() }

func listenQUIC(ctx context.Context, options endpoint.Options) error {
	config, fingerprint, err := serverTLS(perfProtocol)
	if err != nil {
		return err
	}
	listener, err := quic.ListenAddr(hostPort(options), config, nil)
	if err != nil {
		return err
	}
	defer listener.Close()
	endpoint.PrintListening(address("quic", options.Host, listener.Addr(), fingerprint))
	for {
		accepted, err := listener.Accept(ctx)
		if err != nil {
			return err
		}
		endpoint.PrintNegotiated(endpoint.Negotiated{Transport: "quic"})
		go func() {
			for {
				stream, err := accepted.AcceptStream(ctx)
				if err != nil {
					return
				}
				go func() {
					var counts endpoint.Counts
					err := endpoint.Answer(quicStream{stream}, &counts)
					if err != nil {
						// The dialer must not wait for the rest.
						stream.CancelRead(0)
						stream.CancelWrite(0)
					}
					endpoint.PrintServed(counts, err)
				}()
			}
		}()
	}
}

func prepareQUIC(options endpoint.Options) (endpoint.Connect, error) {
	host, fingerprint, err := parseAddress(options.Address, "quic")
	return func(ctx context.Context) (endpoint.Connection, error) {
		dialed, err := quic.DialAddr(ctx, host, clientTLS(perfProtocol, fingerprint), nil)
		if err != nil {
			return nil, err
		}
		return &connection{
			transport: "quic",
			transfer: func(ctx context.Context, options endpoint.Options, counts *endpoint.Counts) error {
				stream, err := dialed.OpenStreamSync(ctx)
				if err != nil {
					return err
				}
				err = endpoint.Request(ctx, quicStream{stream}, options, counts)
				if options.IsTimedDownload() {
					stream.CancelRead(0)
				}
				return err
			},
			close: func() { _ = dialed.CloseWithError(0, "") },
		}, nil
	}, err
}
