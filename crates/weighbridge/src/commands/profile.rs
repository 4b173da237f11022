//! `weighbridge profile`.

use wb_profile::image::request::ImageProgress;
use wb_profile::image::{self, ImageSpec};
use wb_report::text::{Align, Table};
use wb_sys::undo::RevertOutcome;

use super::hosts::{close, connect_hosts, profile_catalog, reset_kernels};
use super::{print_text, runtime};
use crate::cli::profile::{CatalogFlags, ImageArgs, ProfileCommand, ProfileRevertArgs, ProfileShowArgs};
use crate::console::{Console, tell};
use crate::error::Error;
use crate::exit::Exit;

/// Carries out what was asked of profiles.
pub(crate) fn profile(command: &ProfileCommand, console: &Console) -> Result<Exit, Error> {
    match command {
        ProfileCommand::List(args) => list(args, console),
        ProfileCommand::Show(args) => show(args),
        ProfileCommand::Image(args) => cache_image(args, console),
        ProfileCommand::Revert(args) => revert(args, console),
    }
}

fn list(args: &CatalogFlags, console: &Console) -> Result<Exit, Error> {
    let mut table = Table::new(&[("profile", Align::Left), ("", Align::Left)]);
    for named in profile_catalog(&args.paths)?.all() {
        table.row(vec![named.name.to_string().into(), named.profile.summary.clone().into()]);
    }
    print_text(&table.draw(console.stdout_style))?;
    print_text(
        "\n`weighbridge profile show NAME` prints one; `weighbridge run --profiles NAME,… TEST` measures in them\n",
    )?;
    Ok(Exit::Success)
}

fn show(args: &ProfileShowArgs) -> Result<Exit, Error> {
    let shelf = profile_catalog(&args.catalog.paths)?;
    let named = shelf.get(&args.name).map_err(wb_profile::ProfileSelectionError::from)?;
    print_text(&named.profile.to_toml())?;
    Ok(Exit::Success)
}

fn cache_image(args: &ImageArgs, console: &Console) -> Result<Exit, Error> {
    let image = args.image.parse::<ImageSpec>().map_err(|error| Error::Usage {
        what: error.to_string(),
        help: "docs/images.md says what can be named".to_owned(),
    })?;
    runtime()?.block_on(async {
        let hosts = connect_hosts(&args.hosts.clone().into(), console).await?;
        let mut well = hosts.pool.unreachable.is_empty();
        for member in &hosts.pool.workers {
            let name = member.worker.name();
            let told = |progress: &ImageProgress| {
                if !console.quiet {
                    tell!("`{name}`: {progress}");
                }
            };
            match image::prepare(&member.worker, &image, &image::ImageOptions::default(), &told).await {
                Ok(base) => print_text(&format!("`{name}`: {} lies in {}\n", base.name, base.path))?,
                Err(error) => {
                    Error::from(error).warn();
                    well = false;
                }
            }
        }
        close(hosts).await?;
        Ok(if well { Exit::Success } else { Exit::Incomplete })
    })
}

/// Each agent puts back what one that was killed has left, at its start.
fn revert(args: &ProfileRevertArgs, console: &Console) -> Result<Exit, Error> {
    let flags = args.hosts.clone().into();
    runtime()?.block_on(async {
        let mut hosts = connect_hosts(&flags, console).await?;
        let (mut well, mut is_held) = (hosts.pool.unreachable.is_empty(), false);
        for member in &hosts.pool.workers {
            let name = member.worker.name();
            let left = member.worker.recovery_report().await?;
            for one in &left.reverted {
                print_text(&format!("`{name}`: {}: {}\n", one.what, one.outcome))?;
                well &= !matches!(one.outcome, RevertOutcome::Conflict { .. });
            }
            if let Some(fault) = &left.fault {
                print_text(&format!("`{name}`: {fault}\n"))?;
                well = false;
            } else if left.unreverted.is_none() && left.reverted.is_empty() {
                print_text(&format!("`{name}`: nothing was left to put back\n"))?;
            }
            if let Some(still) = left.unreverted {
                well = false;
                is_held |= still.is_locked;
                Error::StillChanged { host: name.clone(), still }.report(console);
            }
        }
        for (name, came) in reset_kernels(&mut hosts, args.reboot_limit, &flags).await? {
            match came {
                Ok(added) => print_text(&format!("`{name}`: rebooted, without {added} of a profile\n"))?,
                Err(error) => {
                    error.warn();
                    well = false;
                }
            }
        }
        close(hosts).await?;
        Ok(match (is_held, well) {
            (true, _) => Exit::Error,
            (false, true) => Exit::Success,
            (false, false) => Exit::Incomplete,
        })
    })
}
