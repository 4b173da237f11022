//! Resource usage of a thread, by the kernel's accounting.

use wb_results::net::Usage;

/// The usage of the calling thread since its start.
#[allow(unsafe_code)]
pub fn current_thread_usage() -> Usage {
    // SAFETY: the structure is all numbers, so zeroes are valid, and the kernel fills it; no library that we use
    // offers getrusage of a thread.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage
    };
    let nanos = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    Usage {
        user_ns: nanos(usage.ru_utime),
        system_ns: nanos(usage.ru_stime),
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
    }
}
