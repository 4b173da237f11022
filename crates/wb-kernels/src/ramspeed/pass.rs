//! The measured loops of ramspeed: one pass of one operation over a thread's part of the arrays.

use super::run::LINE;
use super::words::Words;
use super::words::scalar::Word;
use super::{Mode, WordType};
use crate::Isa;
use crate::prefetch::prefetch_to_second_level;

/// A pass; the arguments are the result, the first operand, the second operand and the number of words.
///
/// # Safety
/// The CPU has the instruction set; all pointers are valid for that many words and aligned to 64 bytes; no other thread
/// uses the result or writes the operands.
pub(super) type PassLoop = unsafe fn(*mut u64, *const u64, *const u64, usize);

/// The pass for an operation, by an instruction set that [`Isa::require`] has accepted.
pub(super) fn select_pass(mode: Mode, kind: WordType, non_temporal: bool, isa: Isa) -> PassLoop {
    use Mode::*;
    use WordType::*;
    match (mode, kind) {
        (Copy, _) => select_for_stores::<op::Copy>(non_temporal, isa),
        (Scale, Integer) => select_for_stores::<op::ScaleInteger>(non_temporal, isa),
        (Scale, Floating) => select_for_stores::<op::ScaleFloating>(non_temporal, isa),
        (Add, Integer) => select_for_stores::<op::AddInteger>(non_temporal, isa),
        (Add, Floating) => select_for_stores::<op::AddFloating>(non_temporal, isa),
        (Triad, Integer) => select_for_stores::<op::TriadInteger>(non_temporal, isa),
        (Triad, Floating) => select_for_stores::<op::TriadFloating>(non_temporal, isa),
    }
}

fn select_for_stores<O: Op>(non_temporal: bool, isa: Isa) -> PassLoop {
    if non_temporal { select_for_isa::<O, true>(isa) } else { select_for_isa::<O, false>(isa) }
}

fn select_for_isa<O: Op, const STREAM: bool>(isa: Isa) -> PassLoop {
    match isa {
        Isa::Scalar => scalar::<O, STREAM>,
        #[cfg(target_arch = "x86_64")]
        Isa::Sse2 => sse2::<O, STREAM>,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => avx2::<O, STREAM>,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => avx512::<O, STREAM>,
        #[cfg(not(target_arch = "x86_64"))]
        other => unreachable!("instruction set {other} is checked beforehand"),
    }
}

trait Op {
    /// Whether there is a second operand.
    const TWO: bool;
    /// # Safety
    /// As the methods of [`Words`].
    unsafe fn apply<W: Words>(first: W, second: W) -> W;
}

mod op {
    use super::{Op, Words};

    pub(super) struct Copy;
    impl Op for Copy {
        const TWO: bool = false;
        #[inline(always)]
        unsafe fn apply<W: Words>(first: W, _: W) -> W {
            first
        }
    }

    macro_rules! ops {
        ($($name:ident, $two:literal, |$first:ident, $second:ident| $result:expr;)*) => {$(
            pub(super) struct $name;
            impl Op for $name {
                const TWO: bool = $two;
                #[inline(always)]
                unsafe fn apply<W: Words>($first: W, $second: W) -> W {
                    // SAFETY: the caller's promise.
                    unsafe { $result }
                }
            }
        )*};
    }

    /// The factor of scale and triad.
    #[inline(always)]
    unsafe fn three<W: Words>() -> W {
        // SAFETY: the caller's promise.
        unsafe { W::splat(3f64.to_bits()) }
    }

    // Integers are tripled by adding: no instruction set below AVX-512 multiplies 64-bit words, and all instruction
    // sets have to do the same work.
    ops! {
        ScaleInteger, false, |a, _b| a.add_integer(a).add_integer(a);
        ScaleFloating, false, |a, _b| a.mul_floating(three());
        AddInteger, true, |a, b| a.add_integer(b);
        AddFloating, true, |a, b| a.add_floating(b);
        TriadInteger, true, |a, b| b.add_integer(b).add_integer(b).add_integer(a);
        TriadFloating, true, |a, b| b.mul_add_floating(three(), a);
    }
}

macro_rules! passes {
    ($name:ident, $words:ty $(, $features:literal)?) => {
        #[inline(never)]
        $(#[target_feature(enable = $features)])?
        unsafe fn $name<O: Op, const STREAM: bool>(to: *mut u64, a: *const u64, b: *const u64, words: usize) {
            // SAFETY: the caller's promise.
            unsafe { whole::<$words, O, STREAM>(to, a, b, words) }
        }
    };
}

passes!(scalar, Word);
#[cfg(target_arch = "x86_64")]
passes!(sse2, super::words::x86::Words2);
#[cfg(target_arch = "x86_64")]
passes!(avx2, super::words::x86::Words4, "avx2,fma");
#[cfg(target_arch = "x86_64")]
passes!(avx512, super::words::x86::Words8, "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma");

/// # Safety
/// As [`PassLoop`].
#[inline(always)]
unsafe fn whole<W: Words, O: Op, const STREAM: bool>(to: *mut u64, a: *const u64, b: *const u64, words: usize) {
    // SAFETY: the caller's promise; the fence is part of SSE.
    unsafe {
        part::<W, O, STREAM>(to, a, b, 0, words);
        #[cfg(target_arch = "x86_64")]
        if STREAM {
            std::arch::x86_64::_mm_sfence();
        }
    }
}

/// Processes words `k..end`: four cache lines at a time, then single vectors, then narrower ones.
///
/// # Safety
/// As [`PassLoop`]; `k` is a multiple of the vector's width.
#[inline(always)]
unsafe fn part<W: Words, O: Op, const STREAM: bool>(to: *mut u64, a: *const u64, b: *const u64, k: usize, end: usize) {
    let mut k = k;
    // SAFETY: no vector reaches beyond `end`.
    unsafe {
        while k + TURN <= end {
            for ahead in (k + PREFETCH_DISTANCE..k + PREFETCH_DISTANCE + TURN).step_by(LINE) {
                prefetch_to_second_level(a.wrapping_add(ahead));
                if O::TWO {
                    prefetch_to_second_level(b.wrapping_add(ahead));
                }
                if !STREAM {
                    prefetch_to_second_level(to.wrapping_add(ahead));
                }
            }
            for vector in 0..TURN / W::N {
                one::<W, O, STREAM>(to, a, b, k + vector * W::N);
            }
            k += TURN;
        }
        while k + W::N <= end {
            one::<W, O, STREAM>(to, a, b, k);
            k += W::N;
        }
        if W::N > 1 && k < end {
            part::<W::Narrower, O, STREAM>(to, a, b, k, end);
        }
    }
}

/// Words per iteration of the loop.
const TURN: usize = 4 * LINE;

/// Words between the computed and the prefetched one: 24 cache lines, prefetched into the second-level cache. On a
/// fourth-generation AMD EPYC, prefetching into the first level costs more than it gains.
const PREFETCH_DISTANCE: usize = 24 * LINE;

/// # Safety
/// As [`PassLoop`], for the vector at word `k`.
#[inline(always)]
unsafe fn one<W: Words, O: Op, const STREAM: bool>(to: *mut u64, a: *const u64, b: *const u64, k: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let first = W::load(a.wrapping_add(k));
        let second = if O::TWO { W::load(b.wrapping_add(k)) } else { first };
        let result = O::apply(first, second);
        if STREAM { result.stream(to.wrapping_add(k)) } else { result.store(to.wrapping_add(k)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HugePagePolicy, MappedMemory};
    use proptest::prelude::*;

    const MODES: [Mode; 4] = [Mode::Copy, Mode::Scale, Mode::Add, Mode::Triad];

    proptest! {
        #[test]
        fn every_isa_matches_the_closed_form_and_writes_no_other_word(words in 0usize..300) {
            let room = 320;
            let mut memory = MappedMemory::map(3 * room * 8, HugePagePolicy::Inherit).unwrap();
            for isa in Isa::available() {
                for mode in MODES {
                    for (kind, stream) in [(WordType::Integer, false), (WordType::Integer, true), (WordType::Floating, false), (WordType::Floating, true)] {
                        let all = memory.as_mut_slice::<u64>();
                        let (to, operands) = all.split_at_mut(room);
                        let (a, b) = operands.split_at_mut(room);
                        to.fill(77);
                        for k in 0..room {
                            (a[k], b[k]) = (kind.word(k as u64 + 1), kind.word(2 * k as u64 + 5));
                        }
                        // SAFETY: 320 words of each array are valid, 320 × 8 bytes keep them
                        // aligned to 64, and this CPU has the instruction set.
                        unsafe { select_pass(mode, kind, stream, isa)(to.as_mut_ptr(), a.as_ptr(), b.as_ptr(), words) };
                        for (k, &word) in to.iter().enumerate() {
                            let expected = mode.expected(k as u64 + 1, 2 * k as u64 + 5);
                            let expected = if k < words { kind.word(expected) } else { 77 };
                            prop_assert_eq!(word, expected, "{} {:?} {:?} {} at {}", isa, mode, kind, stream, k);
                        }
                    }
                }
            }
        }
    }
}
