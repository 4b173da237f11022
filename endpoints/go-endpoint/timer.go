package endpoint

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Unlimited is what a dialer asks for that ends the transfer itself, by resetting the stream.
const Unlimited = math.MaxUint64

// Directions of a transfer of a fixed time
const (
	Upload   = "upload"
	Download = "download"
)

// IsTimed is whether transfers take a fixed time.
func (o Options) IsTimed() bool { return o.Duration > 0 }

// IsTimedDownload is whether the dialer ends what the listener sends.
func (o Options) IsTimedDownload() bool { return o.IsTimed() && o.Direction == Download }

func (o Options) checkDirection() error {
	if o.IsTimed() && o.Direction != Upload && o.Direction != Download {
		return fmt.Errorf("invalid --direction `%s`: expected %s or %s", o.Direction, Upload, Download)
	}
	return nil
}

// Report prints what a transfer had moved at a time.
func (o Options) Report(at time.Time, sent, received int64) { o.report(at, sent, received) }

// Timer ends a transfer after a fixed time, and prints meanwhile what it has moved.
type Timer struct {
	End  time.Time
	stop func()
}

// StartTimer starts the time of a transfer.
func (o Options) StartTimer(counts *Counts) *Timer {
	ticker := time.NewTicker(o.Interval)
	stopped, ended := make(chan struct{}), make(chan struct{})
	report := func() {
		o.report(time.Now(), atomic.LoadInt64(&counts.Sent), atomic.LoadInt64(&counts.Received))
	}
	go func() {
		defer close(ended)
		for {
			select {
			case <-stopped:
				return
			case <-ticker.C:
				report()
			}
		}
	}()
	stop := sync.OnceFunc(func() {
		ticker.Stop()
		close(stopped)
		<-ended
		report()
	})
	return &Timer{End: time.Now().Add(o.Duration), stop: stop}
}

// IsOver is whether the time is over.
func (t *Timer) IsOver() bool { return !time.Now().Before(t.End) }

// Stop prints what was moved for the last time.
func (t *Timer) Stop() { t.stop() }
