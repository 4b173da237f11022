package endpoint

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

const bufferSize = 64 * 1024

var payload [bufferSize]byte

// Stream is a bidirectional stream that can be closed for writing.
type Stream interface {
	io.ReadWriter
	CloseWrite() error
	SetDeadline(time.Time) error
}

// Request sends the header and the payload, and reads the answer to its end.
func Request(ctx context.Context, stream Stream, options Options, counts *Counts) error {
	if deadline, ok := ctx.Deadline(); ok {
		if err := stream.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if options.IsTimed() {
		return requestTimed(stream, options, counts)
	}
	if err := writeHeader(stream, uint64(options.Receive)); err != nil {
		return err
	}
	if err := Send(stream, options.Send, counts); err != nil {
		return err
	}
	if err := stream.CloseWrite(); err != nil {
		return err
	}
	return Receive(stream, counts)
}

func writeHeader(stream Stream, requested uint64) error {
	var header [8]byte
	binary.BigEndian.PutUint64(header[:], requested)
	_, err := stream.Write(header[:])
	return err
}

// requestTimed sends, or asks for, payload until the time is over. After a download the stream has to be reset.
func requestTimed(stream Stream, options Options, counts *Counts) error {
	timer := options.StartTimer(counts)
	defer timer.Stop()
	requested := uint64(0)
	if options.Direction == Download {
		requested = Unlimited
	}
	if err := writeHeader(stream, requested); err != nil {
		return err
	}
	if options.Direction == Upload {
		if err := SendUntil(stream, timer, counts); err != nil {
			return err
		}
		timer.Stop()
	}
	if err := stream.CloseWrite(); err != nil {
		return err
	}
	if options.Direction == Upload {
		return Receive(stream, counts)
	}
	if err := stream.SetDeadline(timer.End); err != nil {
		return err
	}
	return ReceiveUntil(stream, timer, counts)
}

// SendUntil writes payload until the time is over.
func SendUntil(writer io.Writer, timer *Timer, counts *Counts) error {
	for !timer.IsOver() {
		written, err := writer.Write(payload[:])
		atomic.AddInt64(&counts.Sent, int64(written))
		if err != nil {
			return err
		}
	}
	return nil
}

// ReceiveUntil reads until the time is over. The end of the payload before is an error.
func ReceiveUntil(reader io.Reader, timer *Timer, counts *Counts) error {
	buffer := make([]byte, bufferSize)
	for !timer.IsOver() {
		read, err := reader.Read(buffer)
		counts.addReceived(read)
		if err != nil && !timer.IsOver() {
			return fmt.Errorf("the transfer ended before its time: %w", err)
		}
	}
	return nil
}

// Answer reads a request to its end and answers it.
func Answer(stream Stream, counts *Counts) error {
	var header [8]byte
	if _, err := io.ReadFull(stream, header[:]); err != nil {
		return err
	}
	if err := Receive(stream, counts); err != nil {
		return err
	}
	requested := binary.BigEndian.Uint64(header[:])
	if requested == Unlimited {
		SendUnlimited(stream, counts)
		return nil
	}
	if err := Send(stream, int64(requested), counts); err != nil {
		return err
	}
	return stream.CloseWrite()
}

// Send writes payload and counts what was written.
func Send(writer io.Writer, bytes int64, counts *Counts) error {
	for counts.Sent < bytes {
		size := min(bytes-counts.Sent, bufferSize)
		written, err := writer.Write(payload[:size])
		counts.Sent += int64(written)
		if err != nil {
			return err
		}
	}
	return nil
}

// SendUnlimited writes payload until the dialer takes no more, which is the regular end.
func SendUnlimited(writer io.Writer, counts *Counts) {
	for {
		written, err := writer.Write(payload[:])
		counts.Sent += int64(written)
		if err != nil {
			return
		}
	}
}

// Receive reads to the end and counts what was read.
func Receive(reader io.Reader, counts *Counts) error {
	buffer := make([]byte, bufferSize)
	for {
		read, err := reader.Read(buffer)
		counts.addReceived(read)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (c *Counts) addReceived(bytes int) {
	if bytes > 0 && c.First.IsZero() {
		c.First = time.Now()
	}
	atomic.AddInt64(&c.Received, int64(bytes))
}
