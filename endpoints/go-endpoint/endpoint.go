// Package endpoint has what endpoints written in Go share: the arguments, the lines on stdout, and the loop of a dialer.
// endpoints/README.md describes both.
package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Options are the arguments of both subcommands.
type Options struct {
	Transport, Security, Muxer string

	// Of a listener
	Host string
	Port int

	// Of a dialer
	Address       string
	Send, Receive int64
	Iterations    int
	Timeout       time.Duration

	// Of a dialer whose transfers take a fixed time
	Duration, Interval time.Duration
	Direction          string
	report             func(at time.Time, sent, received int64)
}

// Negotiated names the protocols of a connection.
type Negotiated struct {
	Transport string `json:"transport"`
	Security  string `json:"security,omitempty"`
	Muxer     string `json:"muxer,omitempty"`
}

// Counts are the bytes of payload that were moved so far, and the time at which the first one arrived.
type Counts struct {
	Sent, Received int64
	First          time.Time
}

// Connection is the dialer's side of a connection.
type Connection interface {
	Negotiated() Negotiated
	// Transfer sends and receives as many bytes of payload as the options say, or for as long. It counts those that
	// were moved, also if it fails.
	Transfer(ctx context.Context, options Options, counts *Counts) error
	Close()
}

// Connect opens a connection, including all handshakes; the context limits its time.
type Connect func(ctx context.Context) (Connection, error)

// Timed is a connection that measures the duration of its transfers itself. It connects for each of them, and when is not known.
type Timed interface {
	// Duration of the last transfer
	Duration() time.Duration
}

// Implementation is what an endpoint implements.
type Implementation struct {
	// Listen serves transfers until the context ends. It calls PrintListening, PrintNegotiated and PrintServed.
	Listen func(ctx context.Context, options Options) error
	// Prepare does all that a dialer needs before it connects, which is not measured.
	Prepare func(options Options) (Connect, error)
	// ConnectsPerTransfer is whether a connection can carry just one transfer.
	ConnectsPerTransfer func(options Options) bool
}

// Main runs the subcommand that the arguments name, and exits.
func Main(implementation Implementation) {
	const usage = "usage: PROGRAM listen|dial --transport TRANSPORT …"
	if len(os.Args) < 2 {
		fail(errors.New(usage))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	var options Options
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	flags.StringVar(&options.Transport, "transport", "", "`NAME` of the transport")
	flags.StringVar(&options.Security, "security", "", "`NAME` of the security layer")
	flags.StringVar(&options.Muxer, "muxer", "", "`NAME` of the multiplexer")
	switch os.Args[1] {
	case "listen":
		flags.StringVar(&options.Host, "host", "127.0.0.1", "IP `ADDRESS` to bind to")
		flags.IntVar(&options.Port, "port", 0, "`PORT` to bind to; 0 = any free one")
		_ = flags.Parse(os.Args[2:])
		if err := implementation.Listen(ctx, options); err != nil && ctx.Err() == nil {
			fail(err)
		}
	case "dial":
		duration := flags.Float64("duration", 0, "transfer for a fixed time, in `SECONDS`")
		interval := flags.Float64("interval", 0.1, "time between two reports of such a transfer, in `SECONDS`")
		flags.StringVar(&options.Direction, "direction", "", "upload or download, of such a transfer")
		timeout := flags.Float64("timeout", 60, "time limit of connecting and of each iteration, in `SECONDS`")
		flags.StringVar(&options.Address, "address", "", "`ADDRESS` that the listener printed")
		flags.Int64Var(&options.Send, "send", 0, "`BYTES` to send in each iteration")
		flags.Int64Var(&options.Receive, "receive", 0, "`BYTES` to receive in each iteration")
		flags.IntVar(&options.Iterations, "iterations", 1, "`NUMBER` of transfers, one after the other")
		_ = flags.Parse(os.Args[2:])
		span := func(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
		options.Timeout, options.Duration, options.Interval = span(*timeout), span(*duration), span(*interval)
		if err := options.checkDirection(); err != nil {
			fail(err)
		}
		if !dial(ctx, implementation, options) {
			os.Exit(1)
		}
	default:
		fail(errors.New(usage))
	}
}

// Choose returns the value of a flag in a map of those that are possible.
func Choose[T any](flag, value string, possible map[string]T) (T, error) {
	chosen, ok := possible[value]
	if ok {
		return chosen, nil
	}
	expected := strings.Join(slices.Sorted(maps.Keys(possible)), ", ")
	if value == "" {
		return chosen, fmt.Errorf("missing --%s: expected one of %s", flag, expected)
	}
	return chosen, fmt.Errorf("unknown %s `%s`: expected one of %s", flag, value, expected)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}

// PrintListening prints the address at which connections are accepted.
func PrintListening(address string) {
	printLine(map[string]string{"listening": address})
}

// PrintNegotiated prints the protocols of a connection whose handshake is complete.
func PrintNegotiated(negotiated Negotiated) {
	printLine(map[string]Negotiated{"negotiated": negotiated})
}

// PrintServed prints what a listener moved in one stream.
func PrintServed(counts Counts, err error) {
	printLine(struct {
		Received int64   `json:"received"`
		Sent     int64   `json:"sent"`
		Error    *string `json:"error"`
	}{counts.Received, counts.Sent, text(err)})
}

type progress struct {
	I        int      `json:"i"`
	At       *float64 `json:"at"`
	Sent     int64    `json:"sent"`
	Received int64    `json:"received"`
}

type iteration struct {
	I        int      `json:"i"`
	Sent     int64    `json:"sent"`
	Received int64    `json:"received"`
	Dial     *float64 `json:"t_dial"`
	Connect  *float64 `json:"t_connect"`
	Open     *float64 `json:"t_open"`
	First    *float64 `json:"t_first"`
	Last     *float64 `json:"t_last"`
	Error    *string  `json:"error"`
}

// dial runs the iterations and reports whether all succeeded.
func dial(ctx context.Context, implementation Implementation, options Options) bool {
	connect, err := implementation.Prepare(options)
	if err != nil {
		fail(err)
	}
	start := time.Now()
	seconds := func(at time.Time) *float64 {
		if at.IsZero() {
			return nil
		}
		value := at.Sub(start).Seconds()
		return &value
	}
	var (
		connection Connection
		line       iteration
		failure    error
	)
	defer func() {
		if connection != nil {
			connection.Close()
		}
	}()
	for i := range options.Iterations {
		line.I, line.Sent, line.Received, line.Open, line.First, line.Last = i, 0, 0, nil, nil, nil
		if failure == nil && connection == nil {
			line.Dial, line.Connect = seconds(time.Now()), nil
			connection, failure = connectWithin(ctx, options.Timeout, connect)
			if failure == nil {
				line.Connect = seconds(time.Now())
				PrintNegotiated(connection.Negotiated())
			}
		}
		err := failure
		if err == nil {
			var counts Counts
			options.report = func(at time.Time, sent, received int64) {
				printLine(progress{i, seconds(at), sent, received})
			}
			opened := time.Now()
			err = transfer(ctx, connection, options, &counts)
			last := time.Now()
			if timed, ok := connection.(Timed); ok {
				last = opened.Add(timed.Duration())
				line.Dial, line.Connect = nil, nil
			}
			line.Sent, line.Received, line.Open, line.First = counts.Sent, counts.Received, seconds(opened), seconds(counts.First)
			if err == nil {
				line.Last = seconds(last)
			} else {
				failure = fmt.Errorf("skipped after iteration %d: %w", i, err)
			}
		}
		line.Error = text(err)
		printLine(line)
		if connection != nil && implementation.ConnectsPerTransfer(options) {
			connection.Close()
			connection = nil
		}
	}
	return failure == nil
}

func connectWithin(ctx context.Context, timeout time.Duration, connect Connect) (Connection, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return connect(ctx)
}

func transfer(ctx context.Context, connection Connection, options Options, counts *Counts) error {
	ctx, cancel := context.WithTimeout(ctx, options.Timeout)
	defer cancel()
	if err := connection.Transfer(ctx, options, counts); err != nil {
		return err
	}
	if !options.IsTimed() && counts.Received != options.Receive {
		return fmt.Errorf("received %d of %d bytes", counts.Received, options.Receive)
	}
	return nil
}

func text(err error) *string {
	if err == nil {
		return nil
	}
	message := err.Error()
	return &message
}

var stdout sync.Mutex

func printLine(line any) {
	text, err := json.Marshal(line)
	if err != nil {
		fail(err)
	}
	stdout.Lock()
	defer stdout.Unlock()
	if _, err := os.Stdout.Write(append(text, '\n')); err != nil {
		os.Exit(1)
	}
}
