//! Scripts that print more than is recorded.

use crate::lab::Lab;

// A script that printed more than 64 MiB was killed, and its host excluded.
#[test]
fn the_log_of_a_script_that_prints_too_much_is_cut_in_the_middle() {
    let lab = Lab::new();
    let script = "#!/bin/sh\necho the first line\nyes 0123456789012345678901234567890123456789 | head -c 80000000\n\
                  echo; echo the last line\n";
    lab.write("loud", script);
    let line = "run steady --min-time 1ms --warm-up 0 --samples 1 --retakes 0 --worker-setup-script loud --into R";
    lab.weighbridge(line).expect_code_of(&[0, 3]);
    assert!(lab.journal("R").iter().any(|event| event["event"] == "attempt-ended"), "the host was excluded");
    let log = lab.read("R/environment/worker-setup-0@local.log");
    assert!(log.contains("exit status 0") && log.contains("the first line\n"), "{}", &log[..200]);
    assert!(log.trim_end().ends_with("the last line"), "{}", &log[log.len() - 200..]);
    let notice = log.lines().find(|line| line.ends_with("bytes of output were cut here]")).unwrap();
    let cut: usize = notice[1..].split(' ').next().unwrap().parse().unwrap();
    assert_eq!(cut, 80_000_000 + "the first line\n\nthe last line\n".len() - (64 << 20));
}
