use wb_model::{Direction, Gate, Metric};

use super::report::{Iperf3Report, Sum};
use crate::foreign::ForeignSample;

pub(super) fn sample(location: String, report: &Iperf3Report) -> ForeignSample {
    let mut sample = ForeignSample::at(location);
    if let Some(message) = &report.error {
        sample.failure = Some(format!("iperf3: {message}"));
        return sample;
    }
    let end = &report.end;
    let is_of_server = report.is_of_server();
    let flow = |sent, received, datagrams| {
        let flow = Flow::new(sent, received, datagrams);
        Flow { received: flow.received.filter(|rate| !is_of_server || *rate > 0.0), ..flow }
    };
    let forward = flow(end.sum_sent.as_ref(), end.sum_received.as_ref(), end.sum.as_ref());
    if report.is_bidirectional() {
        let (sent, received) = (end.sum_sent_bidir_reverse.as_ref(), end.sum_received_bidir_reverse.as_ref());
        let reverse = flow(sent, received, end.sum_bidir_reverse.as_ref());
        let sum = |rate: fn(&Flow<'_>) -> Option<f64>| Some(rate(&forward)? + rate(&reverse)?);
        push_throughput(&mut sample, sum(|flow| flow.sent), sum(|flow| flow.received));
        forward.push_figures(&mut sample, "forward-");
        reverse.push_figures(&mut sample, "reverse-");
    } else {
        push_throughput(&mut sample, forward.sent, forward.received);
        forward.push_losses(&mut sample, "");
    }
    let has_received = sample.readings.iter().any(|reading| reading.metric.primary);
    if is_of_server && !has_received {
        let reason = "the report of a server has not what its client received: import that of the client";
        sample.reject(Gate::Output, reason);
    }
    let senders = || end.streams.iter().filter_map(|stream| stream.sender.as_ref());
    let means: Vec<f64> = senders().filter_map(|sender| sender.mean_rtt.0).filter(|rtt| *rtt > 0.0).collect();
    let max = senders().filter_map(|sender| sender.max_rtt.0).filter(|rtt| *rtt > 0.0).reduce(f64::max);
    let mean = (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64);
    sample.push_reading(Metric::latency("rtt-mean", "ns"), mean.map(|micros| micros * 1e3));
    sample.push_reading(Metric::latency("rtt-max", "ns"), max.map(|micros| micros * 1e3));
    sample.push_reading(Metric::resource("cpu-host", "%"), end.cpu.host_total.0);
    sample.push_reading(Metric::resource("cpu-remote", "%"), end.cpu.remote_total.0.filter(|_| !is_of_server));
    sample.seconds = forward.seconds;
    sample
}

fn push_throughput(sample: &mut ForeignSample, sent: Option<f64>, received: Option<f64>) {
    sample.push_reading(Metric::throughput("received", "bit/s").primary(), received);
    sample.push_reading(Metric::throughput("sent", "bit/s"), sent);
}

struct Flow<'a> {
    sent: Option<f64>,
    received: Option<f64>,
    seconds: Option<f64>,
    /// Has the retransmissions.
    sender: Option<&'a Sum>,
    /// Has the lost datagrams.
    receiver: Option<&'a Sum>,
}

impl<'a> Flow<'a> {
    /// Before iperf3 3.7 datagrams have a single sum: the rate of the sender, and the losses.
    fn new(sent: Option<&'a Sum>, received: Option<&'a Sum>, datagrams: Option<&'a Sum>) -> Self {
        let rate = |sum: Option<&Sum>| sum.and_then(|sum| sum.bits_per_second.0);
        let received_rate = |sum: &Sum| Some(sum.bits_per_second.0? * (1.0 - sum.lost_percent.0? / 100.0));
        Self {
            sent: rate(sent.or(datagrams)).filter(|rate| *rate > 0.0),
            received: rate(received).or_else(|| datagrams.and_then(received_rate)),
            seconds: received.or(datagrams).or(sent).and_then(|sum| sum.seconds.0),
            sender: sent,
            receiver: datagrams,
        }
    }

    fn push_figures(&self, sample: &mut ForeignSample, prefix: &str) {
        sample.push_reading(Metric::throughput(&format!("{prefix}received"), "bit/s"), self.received);
        sample.push_reading(Metric::throughput(&format!("{prefix}sent"), "bit/s"), self.sent);
        self.push_losses(sample, prefix);
    }

    fn push_losses(&self, sample: &mut ForeignSample, prefix: &str) {
        let check =
            |name: &str, unit: &str| Metric::check(&format!("{prefix}{name}"), unit).direction(Direction::Lower);
        sample.push_reading(check("retransmits", "segments"), self.sender.and_then(|sum| sum.retransmits.0));
        let Some(receiver) = self.receiver else { return };
        if let Some(lost) = receiver.lost_percent.0.filter(|lost| *lost > 100.0) {
            sample.reject(Gate::Plausibility, format!("{prefix}lost is {lost} %: expected at most 100 %"));
        }
        sample.push_reading(check("lost", "%"), receiver.lost_percent.0);
        let jitter = Metric::latency(&format!("{prefix}jitter"), "ns");
        sample.push_reading(jitter, receiver.jitter_ms.0.map(|milliseconds| milliseconds * 1e6));
    }
}
