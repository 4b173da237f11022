//! `weighbridge peers list --check-deps`: what the endpoints of a matrix need, and whether this machine has it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use wb_peers::Endpoint;
use wb_report::text::{Align, Table};

use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::print_text;

/// Engines of which one has to have an image.
const ENGINES: [&str; 2] = ["podman", "docker"];
/// What the endpoints of libp2p's suites find each other with.
const REDIS: [&str; 2] = ["redis-server", "redis-cli"];

/// Prints what each endpoint needs, and fails if something is missing. Programs are relative to the folder of `file`.
pub(super) fn check_dependencies(endpoints: &[&Endpoint], file: &Path, console: &Console) -> Result<Exit, Error> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut table = Table::new(&[("endpoint", Align::Left), ("needs", Align::Left), ("", Align::Left)]);
    let mut is_complete = true;
    for endpoint in endpoints {
        for Dependency { what, is_there } in dependencies(endpoint, folder) {
            is_complete &= is_there;
            let state = if is_there { "found" } else { "missing" };
            table.row(vec![endpoint.id.as_str().into(), what.into(), state.into()]);
        }
    }
    print_text(&table.draw(console.stdout_style))?;
    Ok(if is_complete { Exit::Success } else { Exit::Error })
}

struct Dependency {
    what: String,
    is_there: bool,
}

fn dependencies(endpoint: &Endpoint, folder: &Path) -> Vec<Dependency> {
    let Some(launch) = &endpoint.launch else {
        return vec![Dependency { what: "a command that starts it".to_owned(), is_there: false }];
    };
    let commands = || [&launch.listener, &launch.dialer].into_iter().flatten();
    let images = commands().filter_map(|command| command.container.as_ref()).map(|image| image.name.clone());
    let programs = commands().filter(|command| command.container.is_none()).filter_map(|command| command.program());
    let redis = REDIS.iter().filter(|_| launch.dialect.is_suite()).map(|program| (*program).to_owned());
    let programs: BTreeSet<String> = programs.chain(redis).collect();
    let images: BTreeSet<String> = images.collect();
    let of_programs = programs.into_iter().map(|what| Dependency { is_there: has_program(&what, folder), what });
    let of_images =
        images.into_iter().map(|image| Dependency { is_there: has_image(&image), what: format!("the image {image}") });
    of_programs.chain(of_images).collect()
}

/// Whether a program exists: in a folder of `PATH`, or relative to the peers file.
fn has_program(program: &str, folder: &Path) -> bool {
    let is_executable =
        |path: &Path| fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    if program.contains('/') {
        return is_executable(&folder.join(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| is_executable(&folder.join(program)))
}

/// Whether an engine that runs has an image.
fn has_image(image: &str) -> bool {
    ENGINES.iter().any(|engine| {
        let mut inspect = Command::new(engine);
        inspect.args(["image", "inspect", image]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // An engine that is not installed has no images.
        inspect.status().is_ok_and(|status| status.success())
    })
}
