//! Memory for the arrays: mapped, aligned, with a huge-page policy and a measured residency.

use crate::Error;
use rustix::io::Errno;
use rustix::mm;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::c_void;
use std::ops::Range;
use std::{fs, io, ptr};

/// The kind of pages that the arrays should be on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HugePagePolicy {
    /// The system's default.
    #[default]
    Inherit,
    /// Huge pages are requested (MADV_HUGEPAGE).
    Always,
    /// As `always`: who requests them accepts that there may be none.
    Try,
    /// Huge pages are forbidden (MADV_NOHUGEPAGE).
    Never,
}

/// Size of the arrays, and how much of it was on huge pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Residency {
    /// Bytes of the arrays, padding included.
    pub bytes: u64,
    /// Bytes that were on huge pages, as the kernel counts them (AnonHugePages).
    pub huge_bytes: u64,
}

/// Anonymous private memory, zeroed, untouched, aligned to [`MappedMemory::ALIGNMENT`]. It lies between two
/// inaccessible pages, so that the kernel never merges it with other mappings and its residency is its own.
#[derive(Debug)]
pub(crate) struct MappedMemory {
    reserved: *mut c_void,
    reserved_bytes: usize,
    base: *mut u8,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone; shared access through it is either read-only
// (no method gives `&mut` from `&self`) or unsafe with its own contract.
unsafe impl Send for MappedMemory {}
// SAFETY: as above.
unsafe impl Sync for MappedMemory {}

/// Number types for which every bit pattern is a value.
pub(crate) trait Zeroable: Copy {}
impl Zeroable for f32 {}
impl Zeroable for f64 {}
impl Zeroable for u64 {}

impl MappedMemory {
    /// Alignment of the first byte: the size of a huge page.
    pub(crate) const ALIGNMENT: usize = 2 << 20;
    const PAGE: usize = 4096;

    /// Maps `bytes` without touching them: the thread that first writes to a page determines its NUMA node.
    pub(crate) fn map(bytes: usize, huge: HugePagePolicy) -> Result<Self, Error> {
        check_available(bytes as u64)?;
        let map_error = |errno: Errno| Error::Map { bytes, source: errno.into() };
        // Room for a guard page on each side and for aligning the start. The kernel provides a huge page only where the
        // whole page is mapped, so the last one is mapped in full too.
        let granularity =
            if matches!(huge, HugePagePolicy::Always | HugePagePolicy::Try) { Self::ALIGNMENT } else { Self::PAGE };
        let length = bytes.max(1).div_ceil(granularity).checked_mul(granularity);
        let reserved_bytes = length
            .and_then(|length| length.checked_add(Self::ALIGNMENT + 2 * Self::PAGE))
            .ok_or_else(|| map_error(Errno::NOMEM))?;
        let length = reserved_bytes - Self::ALIGNMENT - 2 * Self::PAGE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nothing
        // that exists.
        let reserved = unsafe {
            mm::mmap_anonymous(
                ptr::null_mut(),
                reserved_bytes,
                mm::ProtFlags::empty(),
                mm::MapFlags::PRIVATE | mm::MapFlags::NORESERVE,
            )
        }
        .map_err(map_error)?;
        let first = reserved as usize + Self::PAGE;
        let offset = first.next_multiple_of(Self::ALIGNMENT) - reserved as usize;
        let memory = Self { reserved, reserved_bytes, base: reserved.cast::<u8>().wrapping_add(offset), bytes };
        // SAFETY: base..base + length lies inside the reservation above, which only `memory` refers to.
        unsafe {
            let base = memory.base.cast();
            mm::mprotect(base, length, mm::MprotectFlags::READ | mm::MprotectFlags::WRITE).map_err(map_error)?;
            if let Some(advice) = huge.advice() {
                mm::madvise(base, length, advice).map_err(|errno| Error::HugePages { source: errno.into() })?;
            }
        }
        Ok(memory)
    }

    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.base
    }

    /// The whole memory as numbers, without a remainder smaller than one number.
    pub(crate) fn as_slice<T: Zeroable>(&self) -> &[T] {
        // SAFETY: mapped, readable, initialised to zero by the kernel, aligned to 2 MiB; every
        // bit pattern is a value of T; `&self` forbids `&mut` at the same time.
        unsafe { std::slice::from_raw_parts(self.base.cast(), self.bytes / size_of::<T>()) }
    }

    /// As [`Self::as_slice`].
    pub(crate) fn as_mut_slice<T: Zeroable>(&mut self) -> &mut [T] {
        // SAFETY: as in `as_slice`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.base.cast(), self.bytes / size_of::<T>()) }
    }

    /// Measures how much of the memory is on huge pages now. Meaningful after the memory was written.
    pub(crate) fn residency(&self) -> Result<Residency, Error> {
        // Parsed here and not by wb-sys: this crate is usable alone.
        let smaps = fs::read_to_string("/proc/self/smaps").map_err(|source| Error::Smaps { source })?;
        let start = self.base as usize;
        let bytes = self.bytes as u64;
        // The part of the last huge page beyond the arrays does not count.
        Ok(Residency { bytes, huge_bytes: huge_bytes(&smaps, start..start + self.bytes).min(bytes) })
    }
}

impl Drop for MappedMemory {
    fn drop(&mut self) {
        // SAFETY: the whole reservation belongs to this value and nothing can borrow from it any
        // more.
        let outcome = unsafe { mm::munmap(self.reserved, self.reserved_bytes) };
        debug_assert!(outcome.is_ok());
    }
}

impl HugePagePolicy {
    fn advice(self) -> Option<mm::Advice> {
        match self {
            Self::Inherit => None,
            Self::Always | Self::Try => Some(mm::Advice::LinuxHugepage),
            Self::Never => Some(mm::Advice::LinuxNoHugepage),
        }
    }
}

/// Fails if less than `bytes` of memory is available (MemAvailable). If the system does not report it, the mapping
/// itself decides.
pub(crate) fn check_available(bytes: u64) -> Result<(), Error> {
    match available_bytes() {
        Ok(Some(available)) if available < bytes => Err(Error::Memory { required: bytes, available }),
        _ => Ok(()),
    }
}

fn available_bytes() -> io::Result<Option<u64>> {
    Ok(parse_kilobytes(&fs::read_to_string("/proc/meminfo")?, "MemAvailable:"))
}

fn parse_kilobytes(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Sums AnonHugePages over the mappings of `smaps` that overlap `range`.
fn huge_bytes(smaps: &str, range: Range<usize>) -> u64 {
    let (mut inside, mut sum) = (false, 0);
    for line in smaps.lines() {
        if let Some(mapping) = parse_addresses(line) {
            inside = mapping.start < range.end && range.start < mapping.end;
        } else if inside {
            sum += parse_kilobytes(line, "AnonHugePages:").unwrap_or(0);
        }
    }
    sum
}

/// `7f00-7f10 rw-p …`, the line that opens each mapping.
fn parse_addresses(line: &str) -> Option<Range<usize>> {
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zeroed_aligned_and_writable_to_its_end() {
        for bytes in [1, 4096, (2 << 20) + 24] {
            let mut memory = MappedMemory::map(bytes, HugePagePolicy::Inherit).unwrap();
            assert_eq!(memory.as_ptr() as usize % MappedMemory::ALIGNMENT, 0);
            assert!(memory.as_slice::<u64>().iter().all(|&word| word == 0));
            memory.as_mut_slice::<u64>().fill(7);
            assert_eq!(memory.as_slice::<u64>().len(), bytes / 8);
            assert!(memory.as_slice::<u64>().iter().all(|&word| word == 7));
        }
    }

    #[test]
    fn residency_follows_the_policy_as_far_as_the_kernel_allows() {
        let bytes = 8 << 20;
        let resident = |huge| {
            let mut memory = MappedMemory::map(bytes, huge).unwrap();
            memory.as_mut_slice::<u64>().fill(1);
            memory.residency().unwrap()
        };
        assert_eq!(resident(HugePagePolicy::Never), Residency { bytes: bytes as u64, huge_bytes: 0 });
        let enabled = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
        if enabled.is_ok_and(|mode| !mode.contains("[never]")) {
            assert!(resident(HugePagePolicy::Always).huge_bytes <= bytes as u64);
        } else {
            wb_test_skip::skip!("transparent huge pages are off here");
        }
    }

    #[test]
    fn more_memory_than_available_is_refused_with_both_figures() {
        let error = MappedMemory::map(usize::MAX / 2, HugePagePolicy::Inherit).unwrap_err();
        assert!(matches!(error, Error::Memory { .. } | Error::Map { .. }), "{error}");
    }

    #[test]
    fn only_overlapping_mappings_are_counted() {
        let smaps = "\
1000-2000 rw-p 00000000 00:00 0
AnonHugePages:      2048 kB
2000-4000 rw-p 00000000 00:00 0
Rss:                   8 kB
AnonHugePages:      4096 kB
9000-a000 r--p 00000000 08:01 12  /bin/true
AnonHugePages:         8 kB
";
        assert_eq!(huge_bytes(smaps, 0x2000..0x3000), 4 << 20);
        assert_eq!(huge_bytes(smaps, 0x1800..0x2800), 6 << 20);
        assert_eq!(huge_bytes(smaps, 0x5000..0x6000), 0);
    }
}
