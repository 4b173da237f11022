//! Tests of the terminal output of the specimen, a study with every element.

#[allow(dead_code, reason = "only the study is used, not its extras")]
use crate::specimen;
use wb_report::text::{Style, format, summary};

const PLAIN: Style = Style { width: 80, colour: false, is_terminal: true };

#[test]
fn uncounted_attempts_are_not_counted_as_disturbed() {
    let mut study = specimen::study();
    let samples = study.cells.iter_mut().flat_map(|cell| &mut cell.attempts);
    let mut uncounted: Vec<_> = samples.filter(|sample| !sample.counted).collect();
    assert!(!uncounted.is_empty());
    uncounted.iter_mut().for_each(|sample| sample.disturbances.push("steal 3.2 %".to_owned()));
    assert_eq!(summary(&study, PLAIN), summary(&specimen::study(), PLAIN));
}

#[test]
fn summary_has_a_line_per_cell_and_shortfalls() {
    insta::assert_snapshot!(summary(&specimen::study(), PLAIN), @r"
                                   median                  spread   n  outcome
    himeno · mflops, higher is better
      grid=S,                 4.21 Gflops          ±0.2 %   0.1 %   6  measured
        isa=avx2,
        threads=1
      grid=M,                 3.34 Gflops  [-4.4, +2.2 %]   1.6 %   9  measured, 2
        isa=avx2,                                                      disturbed
        threads=1
      grid=M,                 6.01 Gflops          ±2.8 %   7.7 %  29  not
        isa=avx2,                                                      converged, 1
        threads=2                                                      invalid
      grid=XL,                          –                       –   0  unsupported
        isa=avx512,
        threads=1
    ramspeed · bandwidth, higher is better
      kernel=triad,             18.4 GB/s  [-0.3, +1.1 %]   0.5 %   6  measured
        non-temporal=t
        rue
      kernel=triad,             14.2 GB/s  [-1.0, +0.5 %]   0.5 %   6  measured
        non-temporal=f
        alse
      kernel=sweep,              212 GB/s  [-1.1, +2.2 %]   1.2 %   6  measured
        non-temporal=f
        alse
    linpack · problem-size=4000 · gflops, higher is better
      threads=1               37.9 Gflops  [-0.2, +0.6 %]   0.2 %   6  measured
      threads=2               64.0 Gflops          ±1.3 %   1.0 %   7  measured
    redis · requests, higher is better
      operation=get     81.4 k requests/s  [-0.9, +0.6 %]   0.6 %   8  measured
      operation=lpush   77.8 k requests/s  [-0.7, +1.1 %]   0.7 %  12  measured, 1
                                                                       of 13
                                                                       attempts
                                                                       failed
      operation=<scr                    –                       –   0  failed
        ipt>alert(1)</
        script>
    fio · iops, higher is better
      block-size=4k,          42.6 k iops          ±2.9 %   1.8 %   9  measured
        rw=randread
      block-size=1m,          1.89 k iops                   1.2 %   4  partial
        rw=read

    with and without the disturbed samples
                      all samples                  n  undisturbed                  n
      himeno          3.34 Gflops  [-4.4, +2.2 %]  9  3.37 Gflops  [-1.6, +1.2 %]  7
        grid=M,
        isa=avx2,
        threads=1

    not measured as requested
      Localhost/himeno/0000:grid=XL,isa=avx512,threads=1
        unsupported: this CPU has no avx512f
      Localhost/redis/0000:operation=<script>alert(1)</script>
        failed: redis-benchmark: exit status 1: unknown command `<script>alert(1)</
        script>`
      Localhost/fio/0000:block-size=1m,rw=read
        partial: 4 valid samples of at least 6; its time budget of 10min is spent

    less precise than requested
      Localhost/himeno/0000:grid=M,isa=avx2,threads=2
        required: ±2 % of the median, 6 to 30 samples; its sample limit is reached

    failed attempts
      Localhost/redis/0000:operation=lpush
        1 of 13 attempts failed: crashed (redis-benchmark: exit status 1: Error:
        Server closed the connection)

    findings
      Localhost/himeno/0000:grid=M,isa=avx2,threads=2
        two modes: 21 samples around 6.12 Gflops, 8 around 5.31 Gflops
      note
        dependence between samples could not be checked in 12 cells with fewer than
        20 samples

    solutions
      ramspeed last-level cache  32 MiB
        read bandwidth falls from 61.0 GB/s at 16 MiB to 18.9 GB/s at 64 MiB

    the environment changed during the run
      sysctl/vm.swappiness  60 → 10
      mounts//mnt/scratch@vm2  (absent) → ext4 rw,relatime

    14 cells: 10 measured, 1 not converged, 1 unsupported, 1 failed, 1 partial; 1 of
    110 attempts failed; 3 min 41 s, 87 % of it workload, 77 % measured
    host anvil · CPU AMD EPYC 7763 64-Core Processor, 2 of 128 CPUs · memory 23.4
    GiB, 1 node · kernel 6.1.0-39-cloud-amd64 · hypervisor kvm
    ");
}

#[test]
fn format_shows_all_details_of_a_cell() {
    let study = specimen::study();
    insta::assert_snapshot!(format(&study, |id| id.to_string().contains("rw=randread"), PLAIN), @r"
    Localhost/fio/0000:block-size=4k,rw=randread
      test     storage through fio
      outcome  measured
      rule     ±2 % of the median, 6 to 30 samples
      key      43dfa42e5f6125bd

    parameters
      block-size  4k
      huge-pages  inherit
      rw          randread

    metrics
                                 n       median                          min
      throughput/iops (primary)  9  42.6 k iops          ±2.9 %  41.3 k iops
      throughput/bandwidth       9     174 MB/s          ±1.7 %     171 MB/s
      latency/p99                9       421 µs  [-8.2, +6.4 %]       386 µs

                                          q1           q3          max         mean
      throughput/iops (primary)  42.3 k iops  43.0 k iops  43.7 k iops  42.7 k iops
      throughput/bandwidth          172 MB/s     175 MB/s     176 MB/s     174 MB/s
      latency/p99                     412 µs       432 µs       448 µs       421 µs

                                       stddev                    interval
      throughput/iops (primary)  0.755 k iops  41.3 k iops to 43.7 k iops
      throughput/bandwidth          1.97 MB/s        171 MB/s to 176 MB/s
      latency/p99                     18.6 µs            386 µs to 448 µs

    samples
                   at    took  counted  throughput/iops  throughput/bandwidth
      warm-up 0  0:02  520 ms       no      38.7 k iops              162 MB/s
      sample 0   0:09  520 ms      yes      42.3 k iops              174 MB/s
      sample 1   0:15  520 ms      yes      41.3 k iops              171 MB/s
      sample 2   0:22  520 ms      yes      43.7 k iops              175 MB/s
      sample 3   0:28  520 ms      yes      42.8 k iops              175 MB/s
      sample 4   0:35  520 ms      yes      42.3 k iops              174 MB/s
      sample 5   0:41  520 ms      yes      43.7 k iops              172 MB/s
      sample 6   0:48  520 ms      yes      43.0 k iops              171 MB/s
      sample 7   0:54  520 ms      yes      42.3 k iops              176 MB/s
      sample 8   1:01  520 ms      yes      42.6 k iops              173 MB/s

                 latency/p99
      warm-up 0       390 µs
      sample 0        424 µs
      sample 1        386 µs
      sample 2        441 µs
      sample 3        432 µs
      sample 4        412 µs
      sample 5        421 µs
      sample 6        415 µs
      sample 7        448 µs
      sample 8        407 µs

    latency: read completion
      percentile      all      min      p25      p50      p95      max
      p50          181 µs   145 µs   168 µs   181 µs   188 µs   210 µs
      p90          262 µs   210 µs   244 µs   262 µs   283 µs   346 µs
      p99          412 µs   330 µs   383 µs   412 µs   499 µs   758 µs
      p99.9       1.68 ms  1.34 ms  1.56 ms  1.68 ms  3.19 ms  7.73 ms
      p100        24.8 ms  19.8 ms  23.1 ms  24.8 ms  99.2 ms   322 ms

    provenance
      instructions  avx2
      weighbridge   0.1.0 sha256 5d41402abc4b2a76


    system anvil
      processor     AMD EPYC 7763 64-Core Processor, microcode 0xa0011d1
      CPUs          2 on 1 core, 1 package, 1 NUMA node, last-level cache 32 MiB
      memory        23.4 GiB
      disk          vda: 256 GiB, solid state, scheduler mq-deadline
      file system   ext4 on / (/dev/vda, rw,relatime)
      distribution  Debian GNU/Linux 12 (bookworm)
      kernel        6.1.0-39-cloud-amd64 x86_64, clock source tsc
      governor      no frequency control, idle states by haltpoll
      huge pages    transparent madvise, defrag madvise
      mitigations   spec_store_bypass: Vulnerable; spectre_v2: Retpolines; not
                    affected by 15 others
    ");
}

// Half the width decides, and both ends of a skewed interval do not show it.
#[test]
fn a_cell_that_nearly_converged_shows_by_how_much_it_did_not() {
    let with = |low: f64, high: f64| {
        let metric = wb_model::Metric::throughput("speed", "MB/s").primary();
        let mut cell = specimen::cell::CellBuilder::new("t", "a=1", metric).samples(100.0, 1.0, 30).build();
        let summary = cell.metrics[0].summary.as_mut().unwrap();
        summary.median = 100.0;
        let interval = wb_stats::Interval { low, high, confidence: 0.97 };
        summary.median_interval = Some(interval);
        cell.outcome = wb_model::CellOutcome::NotConverged {
            percent: interval.half_width_percent(100.0).unwrap(),
            metrics: Vec::new(),
        };
        let study = wb_results::Study { cells: vec![cell], ..specimen::study() };
        let of_cell = format(&study, |_| true, Style { width: 120, colour: false, is_terminal: true });
        let outcome = of_cell.lines().find(|line| line.contains(" outcome ")).unwrap().trim().to_owned();
        let table = wb_report::text::summary(&study, Style { width: 120, colour: false, is_terminal: true });
        let row = table.lines().nth(2).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        (row, outcome)
    };
    let (row, outcome) = with(97.99, 102.01);
    assert!(row.contains("100 MB/s ±2.01 % "), "{row}");
    assert_eq!(outcome, "outcome  not converged, ±2.01 %");
    let (row, outcome) = with(100.0, 104.01);
    assert!(row.contains("100 MB/s [+0.0, +4.0 %] "), "{row}");
    assert_eq!(outcome, "outcome  not converged, [+0.0, +4.0 %] (half its width: 2.01 %)");
}

#[test]
fn uncounted_samples_have_a_reason() {
    let study = specimen::study();
    let text = format(&study, |id| id.to_string().contains("lpush"), PLAIN);
    assert!(text.contains("crashed (redis-benchmark: exit status 1: Error: Server closed the"), "{text}");
}

#[test]
fn curve_is_shown_as_a_table() {
    let study = specimen::study();
    let text = format(&study, |id| id.to_string().contains("sweep"), PLAIN);
    let table: String = text
        .lines()
        .skip_while(|line| *line != "bandwidth over block size")
        .take(5)
        .map(|l| format!("{l}\n"))
        .collect();
    insta::assert_snapshot!(table, @r"
    bandwidth over block size
      block size       read                interval      write
      1 KiB        225 GB/s    217 GB/s to 232 GB/s   139 GB/s
      2 KiB        226 GB/s    218 GB/s to 232 GB/s   139 GB/s
      4 KiB        224 GB/s    216 GB/s to 231 GB/s   137 GB/s
    ");
}

#[test]
fn colour_only_adds_escapes_and_the_width_is_not_exceeded() {
    let study = specimen::study();
    for width in [60, 80, 200] {
        let plain = summary(&study, Style { width, colour: false, is_terminal: true })
            + &format(&study, |_| true, Style { width, colour: false, is_terminal: true });
        let coloured = summary(&study, Style { width, colour: true, is_terminal: true })
            + &format(&study, |_| true, Style { width, colour: true, is_terminal: true });
        assert!(!plain.contains('\u{1b}'));
        assert_eq!(without_escapes(&coloured), plain);
        let widest = plain.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(width), "{widest:?} of {width}");
    }
}

fn without_escapes(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| out + part.split_once('m').map_or("", |(_, rest)| rest))
}
