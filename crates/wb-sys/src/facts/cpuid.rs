//! The hypervisor signature reported by the CPUID instruction.

/// The signature of CPUID leaf 0x4000_0000, where the hypervisor bit (leaf 1, ECX bit 31) is set:
/// `KVMKVMKVM`, `TCGTCGTCGTCG`. `None` on bare metal and on other architectures.
#[cfg(target_arch = "x86_64")]
pub(super) fn hypervisor() -> Option<String> {
    use std::arch::x86_64::__cpuid;
    // Older compilers require the unsafe block; newer ones declare the intrinsic safe.
    #[allow(unused_unsafe)]
    // SAFETY: every x86-64 processor has CPUID, which has no side effects.
    let (present, leaf) = unsafe { (__cpuid(1).ecx >> 31 == 1, __cpuid(0x4000_0000)) };
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].into_iter().flat_map(u32::to_le_bytes).collect();
    present.then(|| String::from_utf8_lossy(&bytes).trim_matches(['\0', ' ']).to_owned())
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn hypervisor() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_signature_is_short_text_or_none() {
        assert!(super::hypervisor().is_none_or(|signature| signature.len() <= 12 * 3));
    }
}
