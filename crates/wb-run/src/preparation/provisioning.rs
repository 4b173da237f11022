//! Hosts provisioned, before anything connects to them to measure.

use std::path::Path;

use wb_model::secrets::mask_words;
use wb_model::{WorkerName, pluralize};
use wb_profile::Controller;
use wb_profile::provision::{ProvisionReport as Came, ProvisionTarget, Provisioner};
use wb_record::steps::{ProvisioningStep, StepOutcome};
use wb_record::{JournalEvent, RunFolder};

use super::{ExcludedHosts, SetupEvent, SetupObserver, StepJournal};
use crate::RunError;

/// By which names their logs go.
const LOG: &str = "provision";

/// From where hosts are provisioned.
pub struct ProvisionContext<'a> {
    /// Where their programs run.
    pub controller: &'a Controller,
    /// Another configuration of ssh than the user's.
    pub ssh_config: Option<&'a Path>,
}

/// Runs the provisioners, one after the other, on those hosts that they have not provisioned in this run; which hosts are
/// left out then, and why.
///
/// # Errors
/// When a provisioner could not be run at all, or nothing can be recorded.
pub async fn provision(
    folder: &Path,
    provisioners: &[Provisioner],
    targets: &[ProvisionTarget],
    desk: &ProvisionContext<'_>,
    tell: SetupObserver<'_>,
) -> Result<ExcludedHosts, RunError> {
    let mut steps = StepJournal::open(folder)?;
    let mut left_out = ExcludedHosts::new();
    for provisioner in provisioners {
        let open = |target: &&ProvisionTarget| {
            !left_out.contains_key(&target.name) && !steps.has_provisioned(provisioner, &target.name)
        };
        let open: Vec<ProvisionTarget> = targets.iter().filter(open).cloned().collect();
        if open.is_empty() {
            continue;
        }
        tell(SetupEvent::Note(format!("provisioning {} by `{provisioner}`", pluralize(open.len(), "host"))));
        let ran =
            provisioner.run(desk.controller, &open, desk.ssh_config, &mut |text| tell(SetupEvent::Note(text))).await;
        let abandoned = ran.is_err() && steps.lines.is_empty();
        let came = match ran {
            Ok(came) => came,
            Err(error) => {
                if abandoned {
                    RunFolder::abandon(steps.run);
                }
                return Err(error.into());
            }
        };
        steps.record(provisioner, &came)?;
        for (host, why) in came.hosts.into_iter().filter_map(|(host, result)| Some((host, result.err()?))) {
            let why = mask_words(&format!("the provisioner `{provisioner}` failed: {why}"));
            tell(SetupEvent::Excluded { what: format!("`{host}` is left out: {why}"), help: None });
            left_out.insert(host, why);
        }
    }
    Ok(left_out)
}

impl StepJournal {
    fn has_provisioned(&self, provisioner: &Provisioner, host: &WorkerName) -> bool {
        let is_it = |step: &ProvisioningStep| {
            step.host == *host && step.provisioner == provisioner.name && step.sha256 == *provisioner.sha256()
        };
        let last = self.events().rev().find_map(|event| match event {
            JournalEvent::Provisioned(step) if is_it(step) => Some(step.outcome.is_done()),
            _ => None,
        });
        last == Some(true)
    }

    fn record(&mut self, provisioner: &Provisioner, came: &Came) -> Result<(), RunError> {
        let number = self.next_number(LOG);
        let mut logs = Vec::new();
        for (of, log) in &came.logs {
            logs.push((of.clone(), self.write_log(LOG, number, of.as_ref(), log)?));
        }
        for (host, result) in &came.hosts {
            let log = logs.iter().find(|(of, _)| of.as_ref().is_none_or(|of| of == host));
            self.write(JournalEvent::Provisioned(ProvisioningStep {
                host: host.clone(),
                provisioner: provisioner.name.clone(),
                sha256: provisioner.sha256().clone(),
                outcome: StepOutcome::of(result),
                seconds: came.elapsed.seconds(),
                log: log.map(|(_, log)| log.clone()).unwrap_or_default(),
            }))?;
        }
        Ok(())
    }
}
