//! CPU affinity: the CPUs that this process may use, and pinning a thread to one of them.

use crate::Error;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs in this thread's affinity mask, ascending.
#[must_use]
pub fn allowed() -> Vec<usize> {
    sched_getaffinity(None).map(|set| (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()).unwrap_or_default()
}

/// Checks a list of CPUs, one per thread, before any thread is started. A CPU may be listed more than once: its threads
/// then share it.
pub fn check_available(cpus: &[usize]) -> Result<(), Error> {
    let allowed = allowed();
    match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        _ if cpus.is_empty() => Err(Error::NoCpu),
        Some(&cpu) => Err(Error::Cpu { cpu, allowed: ranges(&allowed) }),
        None => Ok(()),
    }
}

pub fn pin(cpu: usize) -> Result<(), Error> {
    let pin_error = |source| Error::Pin { cpu, source };
    if cpu >= CpuSet::MAX_CPU {
        return Err(pin_error(std::io::ErrorKind::InvalidInput.into()));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(|errno| pin_error(errno.into()))
}

/// `0-3,8` for 0, 1, 2, 3, 8.
fn ranges(cpus: &[usize]) -> String {
    cpus.chunk_by(|a, b| a + 1 == *b)
        .map(|run| match run {
            [one] => one.to_string(),
            [first, .., last] => format!("{first}-{last}"),
            [] => String::new(),
        })
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cpus_is_written_as_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
    }

    #[test]
    fn a_cpu_outside_the_mask_is_refused_by_name() {
        let error = check_available(&[allowed()[0], 1023]).unwrap_err();
        assert!(matches!(error, Error::Cpu { cpu: 1023, .. }), "{error}");
        assert!(matches!(check_available(&[]), Err(Error::NoCpu)));
    }

    #[test]
    fn a_pinned_thread_may_use_that_cpu_only() {
        let cpu = *allowed().last().unwrap();
        let affinity = std::thread::spawn(move || pin(cpu).map(|()| allowed())).join().unwrap();
        assert_eq!(affinity.unwrap(), [cpu]);
        assert!(matches!(pin(1 << 40), Err(Error::Pin { .. })));
    }
}
