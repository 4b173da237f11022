//! Provisions hosts before anything connects to them.

use std::path::Path;

use wb_model::secrets::mask_url_credentials;
use wb_model::{WorkerName, pluralize};
use wb_profile::Controller;
use wb_profile::provision::{ProvisionReport as Came, ProvisionTarget, Provisioner};
use wb_record::JournalEvent;
use wb_record::steps::{PreparationKind, PreparationStart, ProvisioningStep, StepOutcome};

use super::{ExcludedHosts, SetupEvent, SetupObserver, StepJournal};
use crate::RunError;

const LOG: &str = "provision";

/// Where provisioners run, and the ssh configuration they use.
pub struct ProvisionContext<'a> {
    pub controller: &'a Controller,
    pub ssh_config: Option<&'a Path>,
}

/// Runs the provisioners, one after the other, for the hosts that they have not provisioned in this run yet; returns
/// the hosts that are left out, with the reasons.
pub async fn provision(
    folder: &Path,
    provisioners: &[Provisioner],
    targets: &[ProvisionTarget],
    desk: &ProvisionContext<'_>,
    report: SetupObserver<'_>,
) -> Result<ExcludedHosts, RunError> {
    let mut steps = StepJournal::open(folder)?;
    let mut left_out = ExcludedHosts::new();
    for provisioner in provisioners {
        let is_due = |target: &&ProvisionTarget| {
            !left_out.contains_key(&target.name) && !steps.has_provisioned(provisioner, &target.name)
        };
        let due: Vec<ProvisionTarget> = targets.iter().filter(is_due).cloned().collect();
        if due.is_empty() {
            continue;
        }
        report(SetupEvent::Progress(format!("provisioning {} by `{provisioner}`", pluralize(due.len(), "host"))));
        steps.write(JournalEvent::PreparationStarted(PreparationStart {
            step: PreparationKind::Provisioning,
            machines: due.iter().map(|target| target.name.clone()).collect(),
            name: Some(provisioner.name.clone()),
        }))?;
        let outcome = provisioner
            .run(desk.controller, &due, desk.ssh_config, &mut |text| report(SetupEvent::Progress(text)))
            .await?;
        steps.record(provisioner, &outcome)?;
        for (host, reason) in outcome.hosts.into_iter().filter_map(|(host, result)| Some((host, result.err()?))) {
            let reason = mask_url_credentials(&format!("the provisioner `{provisioner}` failed: {reason}"));
            report(SetupEvent::MachineExcluded { message: format!("`{host}` is left out: {reason}"), help: None });
            left_out.insert(host, reason);
        }
    }
    Ok(left_out)
}

impl StepJournal {
    fn has_provisioned(&self, provisioner: &Provisioner, host: &WorkerName) -> bool {
        let is_same = |step: &ProvisioningStep| {
            step.host == *host && step.provisioner == provisioner.name && step.sha256 == *provisioner.sha256()
        };
        let last = self.events().rev().find_map(|event| match event {
            JournalEvent::Provisioned(step) if is_same(step) => Some(step.outcome.is_done()),
            _ => None,
        });
        last == Some(true)
    }

    fn record(&mut self, provisioner: &Provisioner, outcome: &Came) -> Result<(), RunError> {
        let number = self.next_number(LOG);
        let mut logs = Vec::new();
        for (worker, log) in &outcome.logs {
            logs.push((worker.clone(), self.write_log(LOG, number, worker.as_ref(), log)?));
        }
        for (host, result) in &outcome.hosts {
            let log = logs.iter().find(|(worker, _)| worker.as_ref().is_none_or(|worker| worker == host));
            self.write(JournalEvent::Provisioned(ProvisioningStep {
                host: host.clone(),
                provisioner: provisioner.name.clone(),
                sha256: provisioner.sha256().clone(),
                outcome: StepOutcome::from_result(result),
                seconds: outcome.elapsed.seconds(),
                log: log.map(|(_, log)| log.clone()).unwrap_or_default(),
            }))?;
        }
        Ok(())
    }
}
