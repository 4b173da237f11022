package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"weighbridge.local/endpoint"
)

// The bytes of the answer that a request asks for
const receiveHeader = "Weighbridge-Receive"

const httpBuffer = 64 * 1024

func listenHTTPS(ctx context.Context, options endpoint.Options) error {
	config, fingerprint, err := serverTLS("http/1.1")
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", hostPort(options))
	if err != nil {
		return err
	}
	var known sync.Map
	server := &http.Server{
		TLSConfig: config,
		Protocols: http1(),
		Handler:   http.HandlerFunc(serveHTTP),
		ConnState: func(accepted net.Conn, state http.ConnState) {
			switch state {
			case http.StateActive: // a request has begun, so that the handshake is complete
				if _, again := known.LoadOrStore(accepted, true); !again {
					endpoint.PrintNegotiated(negotiatedHTTPS(accepted.(*tls.Conn)))
				}
			case http.StateClosed:
				known.Delete(accepted)
			}
		},
	}
	context.AfterFunc(ctx, func() { server.Close() })
	endpoint.PrintListening(address("https", options.Host, listener.Addr(), fingerprint))
	return server.ServeTLS(listener, "", "")
}

func serveHTTP(response http.ResponseWriter, request *http.Request) {
	var counts endpoint.Counts
	err := answerHTTP(response, request, &counts)
	endpoint.PrintServed(counts, err)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

func answerHTTP(response http.ResponseWriter, request *http.Request, counts *endpoint.Counts) error {
	requested, err := strconv.ParseUint(request.Header.Get(receiveHeader), 10, 64)
	if err != nil {
		return fmt.Errorf("invalid %s: %w", receiveHeader, err)
	}
	if err := endpoint.Receive(request.Body, counts); err != nil {
		return err
	}
	response.Header().Set("Content-Type", "application/octet-stream")
	if requested == endpoint.Unlimited {
		endpoint.SendUnlimited(response, counts)
		return nil
	}
	response.Header().Set("Content-Length", strconv.FormatUint(requested, 10))
	if err := endpoint.Send(response, int64(requested), counts); err != nil {
		return err
	}
	// What is still in the buffer may fail as well.
	return http.NewResponseController(response).Flush()
}

func prepareHTTPS(options endpoint.Options) (endpoint.Connect, error) {
	host, fingerprint, err := parseAddress(options.Address, "https")
	return func(ctx context.Context) (endpoint.Connection, error) { return dialHTTPS(ctx, host, fingerprint) }, err
}

func dialHTTPS(ctx context.Context, host, fingerprint string) (endpoint.Connection, error) {
	dialer := tls.Dialer{Config: clientTLS("http/1.1", fingerprint)}
	dialed, err := dialer.DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	prepared := make(chan net.Conn, 1)
	prepared <- dialed
	transport := &http.Transport{
		Protocols:          http1(),
		DisableCompression: true,
		MaxConnsPerHost:    1,
		WriteBufferSize:    httpBuffer,
		ReadBufferSize:     httpBuffer,
		DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
			select {
			case connection := <-prepared:
				return connection, nil
			default:
				return nil, errors.New("the connection was closed")
			}
		},
	}
	return &httpsConnection{connection{
		transport: "https",
		transfer: func(ctx context.Context, options endpoint.Options, counts *endpoint.Counts) error {
			return requestHTTP(ctx, transport, host, options, counts)
		},
		close: func() {
			transport.CloseIdleConnections()
			dialed.Close()
		},
	}, dialed.(*tls.Conn)}, nil
}

type httpsConnection struct {
	connection
	secure *tls.Conn
}

func (c *httpsConnection) Negotiated() endpoint.Negotiated { return negotiatedHTTPS(c.secure) }

func negotiatedHTTPS(secure *tls.Conn) endpoint.Negotiated {
	if version := secure.ConnectionState().Version; version != tls.VersionTLS13 {
		return endpoint.Negotiated{Transport: "https over " + tls.VersionName(version)}
	}
	return endpoint.Negotiated{Transport: "https"}
}

func requestHTTP(
	ctx context.Context, transport *http.Transport, host string, options endpoint.Options, counts *endpoint.Counts,
) error {
	if options.IsTimed() {
		return requestTimedHTTP(ctx, transport, host, options, counts)
	}
	body := &payloadReader{left: options.Send}
	request, err := newRequest(ctx, host, body, uint64(options.Receive))
	if err != nil {
		return err
	}
	request.ContentLength = options.Send
	if options.Send == 0 {
		request.Body = http.NoBody
	}
	response, err := roundTrip(transport, request)
	counts.Sent = options.Send - body.left
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return endpoint.Receive(response.Body, counts)
}

// requestTimedHTTP sends a body of unknown length, or closes the connection when it has received for long enough.
func requestTimedHTTP(
	ctx context.Context, transport *http.Transport, host string, options endpoint.Options, counts *endpoint.Counts,
) error {
	timer := options.StartTimer(counts)
	defer timer.Stop()
	var body io.Reader = http.NoBody
	requested := uint64(endpoint.Unlimited)
	if !options.IsTimedDownload() {
		body, requested = &timedReader{timer, counts}, 0
	}
	request, err := newRequest(ctx, host, body, requested)
	if err != nil {
		return err
	}
	response, err := roundTrip(transport, request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if !options.IsTimedDownload() {
		return endpoint.Receive(response.Body, counts)
	}
	// A read that waits ends with the body.
	expired := time.AfterFunc(time.Until(timer.End), func() { response.Body.Close() })
	defer expired.Stop()
	return endpoint.ReceiveUntil(response.Body, timer, counts)
}

func newRequest(ctx context.Context, host string, body io.Reader, requested uint64) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+host+"/", body)
	if err == nil {
		request.Header.Set(receiveHeader, strconv.FormatUint(requested, 10))
	}
	return request, err
}

func roundTrip(transport *http.Transport, request *http.Request) (*http.Response, error) {
	response, err := transport.RoundTrip(request)
	if err == nil && response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("the listener answered %s", response.Status)
	}
	return response, err
}

// timedReader is a body of zeros that ends with the time.
type timedReader struct {
	timer  *endpoint.Timer
	counts *endpoint.Counts
}

func (r *timedReader) Read(buffer []byte) (int, error) {
	if r.timer.IsOver() {
		r.timer.Stop()
		return 0, io.EOF
	}
	atomic.AddInt64(&r.counts.Sent, int64(len(buffer)))
	return len(buffer), nil
}

// payloadReader is a body of zeros that counts how much of it is left.
type payloadReader struct{ left int64 }

func (r *payloadReader) Read(buffer []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	size := min(int64(len(buffer)), r.left)
	r.left -= size
	return int(size), nil
}

func http1() *http.Protocols {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return protocols
}
