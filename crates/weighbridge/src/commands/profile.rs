//! `weighbridge profile`: lists and shows profiles, caches images, and reverts what killed runs left.

use wb_profile::image::request::ImageProgress;
use wb_profile::image::{self, ImageSpec};
use wb_report::text::{Align, Table};
use wb_session::SessionError;
use wb_session::hosts::{connect_hosts, profile_catalog};
use wb_session::program::runtime;
use wb_sys::undo::RevertOutcome;

use crate::cli::profile::{CatalogFlags, ImageArgs, ProfileCommand, ProfileRevertArgs, ProfileShowArgs};
use crate::console::{Console, message};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::print_text;

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
        "\n`weighbridge profile show NAME` prints a profile; `weighbridge run --profiles NAME,… TEST` measures in profiles\n",
    )?;
    Ok(Exit::Success)
}

fn show(args: &ProfileShowArgs) -> Result<Exit, Error> {
    let catalog = profile_catalog(&args.catalog.paths)?;
    let unknown = |error| SessionError::from(wb_profile::ProfileSelectionError::from(error));
    let named = catalog.get(&args.name).map_err(unknown)?;
    print_text(&named.profile.to_toml())?;
    Ok(Exit::Success)
}

fn cache_image(args: &ImageArgs, console: &Console) -> Result<Exit, Error> {
    let image = args.image.parse::<ImageSpec>().map_err(|error| Error::Usage {
        what: error.to_string(),
        help: "docs/profiles.md describes the forms of an image name".to_owned(),
    })?;
    runtime()?.block_on(async {
        let hosts = connect_hosts(&args.hosts.clone().into(), &console.events()).await?;
        let mut is_complete = hosts.pool.unreachable.is_empty();
        for member in &hosts.pool.workers {
            let name = member.worker.name();
            let report = |progress: &ImageProgress| {
                if !console.quiet {
                    message!("`{name}`: {progress}");
                }
            };
            match image::prepare(&member.worker, &image, &image::ImageOptions::default(), &report).await {
                Ok(base) => print_text(&format!("`{name}`: {} is cached in {}\n", base.name, base.path))?,
                Err(error) => {
                    Error::from(error).warn();
                    is_complete = false;
                }
            }
        }
        hosts.close().await?;
        Ok(if is_complete { Exit::Success } else { Exit::Incomplete })
    })
}

/// Reverts what killed runs left on hosts. Each agent does so when it starts, so this reports the results.
fn revert(args: &ProfileRevertArgs, console: &Console) -> Result<Exit, Error> {
    runtime()?.block_on(async {
        let mut hosts = connect_hosts(&args.hosts.clone().into(), &console.events()).await?;
        let (mut is_reverted, mut is_held) = (hosts.pool.unreachable.is_empty(), false);
        for member in &hosts.pool.workers {
            let name = member.worker.name();
            let left = member.worker.recovery_report().await?;
            for one in &left.reverted {
                print_text(&format!("`{name}`: {}: {}\n", one.description, one.outcome))?;
                is_reverted &= !matches!(one.outcome, RevertOutcome::Conflict { .. });
            }
            if let Some(fault) = &left.fault {
                print_text(&format!("`{name}`: {fault}\n"))?;
                is_reverted = false;
            } else if left.unreverted.is_none() && left.reverted.is_empty() {
                print_text(&format!("`{name}`: nothing to revert\n"))?;
            }
            if let Some(still) = left.unreverted {
                is_reverted = false;
                is_held |= still.is_locked;
                Error::from(SessionError::StillChanged { host: name.clone(), still }).report(console);
            }
        }
        for (name, result) in hosts.reset_kernels(args.reboot_limit).await? {
            match result {
                Ok(added) => print_text(&format!("`{name}`: rebooted without {added}, which a profile had added\n"))?,
                Err(error) => {
                    Error::from(SessionError::from(error)).warn();
                    is_reverted = false;
                }
            }
        }
        hosts.close().await?;
        Ok(match (is_held, is_reverted) {
            (true, _) => Exit::Error,
            (false, true) => Exit::Success,
            (false, false) => Exit::Incomplete,
        })
    })
}
