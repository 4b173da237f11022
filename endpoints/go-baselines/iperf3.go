package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"weighbridge.local/endpoint"
)

// iperf3Result has the figures of iperf3's JSON that matter here.
type iperf3Result struct {
	Start struct {
		Test struct {
			Reverse int `json:"reverse"`
		} `json:"test_start"`
	} `json:"start"`
	Intervals []struct {
		Sum struct {
			End   float64 `json:"end"`
			Bytes int64   `json:"bytes"`
		} `json:"sum"`
	} `json:"intervals"`
	End struct {
		Sent     iperf3Sum `json:"sum_sent"`
		Received iperf3Sum `json:"sum_received"`
	} `json:"end"`
	Error string `json:"error"`
}

type iperf3Sum struct {
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

// listenIperf3 runs one server for all transfers: it reports each of them in an object of its own.
func listenIperf3(ctx context.Context, options endpoint.Options) error {
	if options.Port == 0 {
		port, err := freePort(options.Host)
		if err != nil {
			return err
		}
		options.Port = port
	}
	arguments := []string{"-s", "-J", "--forceflush", "-B", options.Host, "-p", strconv.Itoa(options.Port)}
	server := iperf3(ctx, arguments...)
	output, err := server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	reported := make(chan error, 1)
	go func() { reported <- reportIperf3(output) }()
	if err := waitUntilListening(ctx, options.Port, reported); err != nil {
		return err
	}
	endpoint.PrintListening("iperf3://" + hostPort(options))
	err = <-reported
	return errors.Join(err, server.Wait())
}

// reportIperf3 prints the lines of each transfer that the server's output has.
func reportIperf3(output io.Reader) error {
	decoder := json.NewDecoder(output)
	for {
		var result iperf3Result
		if err := decoder.Decode(&result); err != nil {
			return fmt.Errorf("iperf3: %w", err)
		}
		var err error
		if result.Error != "" {
			err = errors.New(result.Error)
		}
		endpoint.PrintNegotiated(endpoint.Negotiated{Transport: "iperf3"})
		counts := endpoint.Counts{Received: result.End.Received.Bytes}
		if result.Start.Test.Reverse != 0 {
			counts = endpoint.Counts{Sent: result.End.Sent.Bytes}
		}
		endpoint.PrintServed(counts, err)
	}
}

// waitUntilListening looks at the kernel's table of sockets: a connection would be a failed test to iperf3.
func waitUntilListening(ctx context.Context, port int, ended <-chan error) error {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			return err
		case <-time.After(10 * time.Millisecond):
		}
		if isListening(port) {
			return nil
		}
	}
	return errors.New("iperf3 does not listen after 10 s")
}

func isListening(port int) bool {
	suffix := fmt.Sprintf(":%04X", port)
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for line := range strings.Lines(string(text)) {
			const listening = "0A"
			if fields := strings.Fields(line); len(fields) > 3 && fields[3] == listening && strings.HasSuffix(fields[1], suffix) {
				return true
			}
		}
	}
	return false
}

func freePort(host string) (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// prepareIperf3 returns a Connect that connects to nothing: each transfer is one run of iperf3, or two if it has both directions.
func prepareIperf3(options endpoint.Options) (endpoint.Connect, error) {
	address, _, err := parseAddress(options.Address, "iperf3")
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	client := &iperf3Connection{arguments: []string{"-c", host, "-p", port, "-J"}}
	client.connection = connection{transport: "iperf3", transfer: client.run, close: func() {}}
	return func(context.Context) (endpoint.Connection, error) { return client, nil }, nil
}

type iperf3Connection struct {
	connection
	arguments []string
	duration  time.Duration
}

// Duration of the last transfer as iperf3 measured it, without its control connection.
func (c *iperf3Connection) Duration() time.Duration { return c.duration }

func (c *iperf3Connection) run(ctx context.Context, options endpoint.Options, counts *endpoint.Counts) error {
	c.duration = 0
	if options.IsTimed() {
		return c.runTimed(ctx, options, counts)
	}
	if options.Send > 0 {
		result, err := c.transferOnce(ctx, sizeArguments(options.Send))
		if err != nil {
			return err
		}
		counts.Sent = result.End.Sent.Bytes
	}
	if options.Receive > 0 {
		result, err := c.transferOnce(ctx, append(sizeArguments(options.Receive), "-R"))
		if err != nil {
			return err
		}
		counts.Received = result.End.Received.Bytes
	}
	return nil
}

// runTimed transfers for a number of seconds. iperf3 reports its intervals at the end, and none below 0.1 s.
func (c *iperf3Connection) runTimed(ctx context.Context, options endpoint.Options, counts *endpoint.Counts) error {
	if options.Duration%time.Second != 0 {
		return fmt.Errorf("not supported: iperf3 takes whole seconds, not %v", options.Duration)
	}
	interval := max(options.Interval, 100*time.Millisecond).Seconds()
	arguments := []string{"-t", strconv.FormatInt(int64(options.Duration/time.Second), 10), "-i", fmt.Sprintf("%g", interval)}
	if options.IsTimedDownload() {
		arguments = append(arguments, "-R")
	}
	opened := time.Now()
	result, err := c.transferOnce(ctx, arguments)
	if err != nil {
		return err
	}
	var moved int64
	for _, interval := range result.Intervals {
		moved += interval.Sum.Bytes
		at := opened.Add(time.Duration(interval.Sum.End * float64(time.Second)))
		if options.IsTimedDownload() {
			options.Report(at, 0, moved)
		} else {
			options.Report(at, moved, 0)
		}
	}
	if options.IsTimedDownload() {
		counts.Received = max(moved, result.End.Received.Bytes)
	} else {
		counts.Sent = max(moved, result.End.Sent.Bytes)
	}
	return nil
}

// sizeArguments are those of a transfer of this many bytes.
func sizeArguments(bytes int64) []string {
	return []string{"-n", strconv.FormatInt(bytes, 10), "-l", strconv.FormatInt(blockSize(bytes), 10)}
}

func (c *iperf3Connection) transferOnce(ctx context.Context, arguments []string) (iperf3Result, error) {
	result, err := runIperf3(ctx, append(arguments, c.arguments...))
	for tries := 1; tries < 50 && len(result.Intervals) == 0 && isBetweenTests(err) && sleep(ctx, 20*time.Millisecond); tries++ {
		result, err = runIperf3(ctx, append(arguments, c.arguments...))
	}
	seconds := result.End.Received.Seconds
	if !slices.Contains(arguments, "-R") {
		// The sender is done as soon as the last block is in the socket's buffer, the receiver when it is told so.
		seconds = max(seconds, result.End.Sent.Seconds)
	}
	c.duration += time.Duration(seconds * float64(time.Second))
	return result, err
}

// isBetweenTests recognises a server that has not left the previous test, or that listens anew after it.
func isBetweenTests(err error) bool {
	if err == nil {
		return false
	}
	return slices.ContainsFunc([]string{"server is busy", "reset by peer", "refused"}, func(text string) bool {
		return strings.Contains(err.Error(), text)
	})
}

// sleep reports whether the context has not ended.
func sleep(ctx context.Context, duration time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(duration):
		return true
	}
}

// blockSize is the largest block of up to 64 KiB that divides the bytes: iperf3 sends whole blocks.
func blockSize(bytes int64) int64 {
	const largest, smallest = 64 * 1024, 1024
	for size := min(bytes, largest); size >= min(bytes, smallest); size-- {
		if bytes%size == 0 {
			return size
		}
	}
	return largest
}

func runIperf3(ctx context.Context, arguments []string) (result iperf3Result, err error) {
	var output bytes.Buffer
	client := iperf3(ctx, arguments...)
	client.Stdout = &output
	failure := client.Run()
	if err := json.Unmarshal(output.Bytes(), &result); err != nil {
		return result, errors.Join(failure, fmt.Errorf("iperf3: %w", err))
	}
	if result.Error != "" {
		return result, errors.New(result.Error)
	}
	return result, failure
}

// iperf3 is ended with this process, and when the context ends.
func iperf3(ctx context.Context, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "iperf3", arguments...)
	command.Stderr = os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return command
}
