//! `isa=scalar` is scalar: its disassembled loops contain no vector arithmetic.

#![cfg(target_arch = "x86_64")]

use std::env;
use std::process::Command;
use wb_kernels::{HugePagePolicy, Isa, Work, himeno, ramspeed};

/// Parts of the names of the measured loops, each with the minimum number of functions.
const LOOPS: [(&str, usize); 5] = [
    ("himeno::sweep::compute_scalar", 1),
    ("himeno::sweep::copy_scalar", 1),
    ("ramspeed::pass::scalar", 7),
    ("ramspeed::blocks::read_scalar", 1),
    ("ramspeed::blocks::write_scalar", 1),
];

#[test]
fn the_scalar_loops_contain_no_vector_instruction() {
    call_everything().unwrap();
    let program = env::current_exe().unwrap();
    let arguments = ["-d", "--demangle", "--no-show-raw-insn", "-M", "att"];
    let Ok(output) = Command::new("objdump").args(arguments).arg(program).output() else {
        wb_test_skip::skip!("objdump is not installed");
        return;
    };
    let listing = String::from_utf8_lossy(&output.stdout);
    for (name, minimum) in LOOPS {
        let functions: Vec<_> = listing.split("\n\n").filter(|function| header(function).contains(name)).collect();
        assert!(functions.len() >= minimum, "{name}: {} found", functions.len());
        for function in functions {
            let vector = function.lines().skip(1).find(|line| is_vector(line));
            assert_eq!(vector, None, "in {}", header(function));
        }
    }
}

/// Runs all loops, so that they are linked into the program.
fn call_everything() -> Result<(), wb_kernels::Error> {
    let cpus = || vec![wb_kernels::cpus::allowed()[0]];
    let (isa, huge_pages, work) = (Isa::Scalar, HugePagePolicy::Inherit, Work::Iterations(1));
    let grid = himeno::Grid::XS;
    himeno::run(&himeno::Config { grid, cpus: cpus(), isa, huge_pages, work })?;
    let (mode, kind) = (ramspeed::Mode::Triad, ramspeed::WordType::Floating);
    let config = ramspeed::Config { mode, kind, non_temporal: false, bytes: 4096, cpus: cpus(), isa, huge_pages, work };
    ramspeed::run(&config)?;
    let (op, min_bytes, max_bytes) = (ramspeed::sweep::Access::Read, 1024, 1024);
    let half_steps = false;
    let config =
        ramspeed::sweep::Config { op, min_bytes, max_bytes, half_steps, cpus: cpus(), isa, huge_pages, seconds: 1e-4 };
    ramspeed::sweep::run(&config).map(drop)
}

fn header(function: &str) -> &str {
    function.lines().next().unwrap_or_default()
}

/// Whether an instruction is packed arithmetic, uses vectors wider than 128 bits, or loads or stores a vector. Clearing
/// and copying a register do not count.
fn is_vector(line: &str) -> bool {
    let mut words = line.split_once(':').map_or("", |(_, rest)| rest).split_whitespace();
    let (name, operands) = (words.next().unwrap_or_default(), words.collect::<Vec<_>>().join(" "));
    let packed =
        ["add", "sub", "mul", "div", "fmadd", "max", "min", "cvtps2pd", "unpck", "shuf", "padd", "psub", "pmul"];
    let floating = name.ends_with("ps") || name.ends_with("pd");
    let arithmetic = packed.iter().any(|part| name.contains(part)) && (floating || name.starts_with('p'));
    let moved = ["movups", "movupd", "movaps", "movapd", "movdqu", "movdqa", "movntp", "movntdq"];
    let memory = moved.iter().any(|part| name.contains(part)) && operands.contains('(');
    arithmetic || memory || operands.contains("%ymm") || operands.contains("%zmm")
}

#[test]
fn vector_instructions_are_distinguished_from_scalar_ones() {
    for line in [
        "1: mulps %xmm1,%xmm2",
        "1: vaddpd (%rax),%xmm0,%xmm1",
        "1: paddq %xmm0,%xmm1",
        "1: movups (%rdi),%xmm0",
        "1: vmovaps %ymm0,%ymm1",
    ] {
        assert!(is_vector(line), "{line}");
    }
    for line in [
        "1: mulss %xmm1,%xmm2",
        "1: xorps %xmm0,%xmm0",
        "1: movaps %xmm0,%xmm1",
        "1: add %rax,%rbx",
        "1: push %rax",
        "1: movsd (%rdi),%xmm0",
    ] {
        assert!(!is_vector(line), "{line}");
    }
}
