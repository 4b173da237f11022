package endpoint

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
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
	var header [8]byte
	binary.BigEndian.PutUint64(header[:], uint64(options.Receive))
	if _, err := stream.Write(header[:]); err != nil {
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

// Answer reads a request to its end and answers it.
func Answer(stream Stream, counts *Counts) error {
	var header [8]byte
	if _, err := io.ReadFull(stream, header[:]); err != nil {
		return err
	}
	if err := Receive(stream, counts); err != nil {
		return err
	}
	if err := Send(stream, int64(binary.BigEndian.Uint64(header[:])), counts); err != nil {
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

// Receive reads to the end and counts what was read.
func Receive(reader io.Reader, counts *Counts) error {
	buffer := make([]byte, bufferSize)
	for {
		read, err := reader.Read(buffer)
		if read > 0 {
			if counts.First.IsZero() {
				counts.First = time.Now()
			}
			counts.Received += int64(read)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
