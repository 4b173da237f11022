//! Containers as endpoints: one is created for each process of a cell, started like a program, and removed with the
//! sample. The removal is in the undo log of the machine before the container exists, so that none is left by a run that
//! was killed.

use serde::{Deserialize, Serialize};
use wb_agent::Command;
use wb_model::ProgramFeature;
use wb_model::secrets::mask_arguments;
use wb_peers::ContainerImage;
use wb_results::Scenario;
use wb_sys::undo::ManagedResource;
use wb_test::{Artefacts, Attempt, Failure, WorkerContext};

use super::failure::FailureKind;
use super::params::ContainerEngine;
use super::sample::LISTENER;
use super::suite::SUITE_PROCESS;

const PRESENT: &str = "present";
/// Prints the state of container `$2` of the engine `$1`.
const READ: &str = r#"if "$1" container inspect "$2" >/dev/null 2>&1; then echo present; else echo absent; fi"#;
/// Sets the state `$2` of container `$3` of the engine `$1`; the file `$4` has the arguments that create it.
const WRITE: &str = r#"case $2 in
absent) "$1" kill "$3" >/dev/null 2>&1; exec "$1" rm --force --volumes "$3" ;;
*) exec xargs -0 "$1" <"$4" ;;
esac"#;
/// Variables that tell an engine where its containers and its daemon are.
const ENGINE_VARIABLES: [&str; 5] =
    ["CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "DOCKER_HOST", "DOCKER_CONFIG", "XDG_RUNTIME_DIR"];

/// An engine that works, which its program does not show: a daemon may be stopped, or a sandbox forbid everything.
pub(super) fn working_engine(engine: ContainerEngine) -> ProgramFeature {
    let program = engine.program();
    ProgramFeature {
        name: "a container engine that runs".to_owned(),
        arguments: vec!["info".to_owned()],
        inherit: ENGINE_VARIABLES.map(str::to_owned).to_vec(),
        source: format!("`{program} info` does not succeed there"),
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Container {
    engine: &'static str,
    image: String,
    /// The engine's id of the image, a hash of its content.
    image_id: String,
    /// Of the engine, with secrets masked.
    arguments: Vec<String>,
}

impl Container {
    /// Creates the container of a process. `process` has the arguments of the image's entry point, the variables and
    /// the placement; the result starts the container and passes on its output. Fails if the image does not exist on
    /// the worker.
    pub(super) async fn create(
        name: &str,
        engine: ContainerEngine,
        image: &ContainerImage,
        process: Command,
        context: &WorkerContext,
    ) -> Result<(Self, Command), Failure> {
        let program = engine.program();
        let image_id = image_id(program, &image.name, context).await?;
        let container = container_name(context.group.folder(), name);
        let arguments = create_arguments(&container, image, &process);
        let file = context.path(&format!("{name}.container"));
        context.put(&file, arguments.join("\0").as_bytes()).await?;
        let shell = |script: &str, arguments: &[&str]| {
            ["sh", "-c", script, "sh", program].iter().chain(arguments).map(|word| (*word).to_owned()).collect()
        };
        let resource = ManagedResource::Command {
            name: format!("container {container}"),
            read: shell(READ, &[&container]),
            write: shell(WRITE, &["{}", &container, &file]),
        };
        context.group.apply_change(resource, Some(PRESENT.to_owned())).await?;
        let start = Command {
            argv: [program, "start", "--attach", &container].map(str::to_owned).to_vec(),
            env: Vec::new(),
            ..engine_command(process)
        };
        let arguments = mask_arguments(&arguments);
        Ok((Self { engine: program, image: image.name.clone(), image_id, arguments }, start))
    }

    pub(super) fn record(&self, name: &str, attempt: &mut Attempt) -> Result<(), Failure> {
        let json = serde_json::to_vec_pretty(self).map_err(|error| Failure::refused(error.to_string()))?;
        attempt.add_artefact(&format!("{name}.container.json"), json);
        Ok(())
    }
}

/// The ids of the images of a sample's sides, which have to be the same in every sample of a cell.
pub(super) fn image_ids(artefacts: &Artefacts) -> Vec<(String, String)> {
    let sides = [LISTENER, SUITE_PROCESS, Scenario::Upload.name(), Scenario::Download.name(), Scenario::Latency.name()];
    let id = |side: &&str| {
        // Programs of the host have no such artefact.
        let container: RecordedContainer = artefacts.json(&format!("{side}.container.json")).ok()?;
        Some((format!("image of {side}"), container.image_id))
    };
    sides.iter().filter_map(id).collect()
}

/// The part of a container's record that is compared.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RecordedContainer {
    image_id: String,
}

fn engine_command(command: Command) -> Command {
    Command { inherit: ENGINE_VARIABLES.map(str::to_owned).to_vec(), ..command }
}

async fn image_id(engine: &str, image: &str, context: &WorkerContext) -> Result<String, Failure> {
    let inspect = Command::new([engine, "image", "inspect", "--format", "{{.Id}}", image]);
    let finished = context.run_to_end(engine_command(inspect)).await?;
    if finished.exit_reason.is_success() {
        Ok(String::from_utf8_lossy(&finished.stdout).trim().to_owned())
    } else {
        let worker = context.worker().name();
        let what = format!(
            "{engine} has no image `{image}` on `{worker}`: build or load it there, if the engine itself works"
        );
        Err(FailureKind::Unsupported.failure(what, &[(engine, &finished.stderr)]))
    }
}

/// The name of a container: that of the group's folder, which is unique on its machine, and of the process.
fn container_name(folder: &str, process: &str) -> String {
    let name: String =
        folder.chars().map(|character| if character.is_ascii_alphanumeric() { character } else { '-' }).collect();
    format!("{}-{process}", name.trim_matches('-'))
}

/// The arguments of an engine that create a container, which shares the network of its host.
fn create_arguments(container: &str, image: &ContainerImage, process: &Command) -> Vec<String> {
    let mut arguments =
        ["create", "--name", container, "--network", "host", "--pull", "never"].map(str::to_owned).to_vec();
    let list = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let placement = &process.placement;
    for (option, numbers) in [("--cpuset-cpus", &placement.cpus), ("--cpuset-mems", &placement.memory_nodes)] {
        if !numbers.is_empty() {
            arguments.push(format!("{option}={}", list(numbers)));
        }
    }
    arguments.extend(process.env.iter().map(|(name, value)| format!("--env={name}={value}")));
    arguments.extend(image.options.iter().cloned());
    arguments.push(image.name.clone());
    arguments.extend(process.argv.iter().cloned());
    arguments
}

#[cfg(test)]
mod tests {
    use wb_model::Placement;

    use super::*;

    #[test]
    fn a_container_has_the_variables_and_the_cpus_of_its_process() {
        let image = ContainerImage { name: "perf-go".to_owned(), options: vec!["--init".to_owned()] };
        let placement = Placement { cpus: vec![0, 2], ..Placement::default() };
        let process = Command::new(["listen"]).env("TRANSPORT", "tcp").placement(placement);
        let arguments = create_arguments("tmp-weighbridge-1-listener", &image, &process).join(" ");
        assert_eq!(
            arguments,
            "create --name tmp-weighbridge-1-listener --network host --pull never --cpuset-cpus=0,2 \
             --env=TRANSPORT=tcp --init perf-go listen"
        );
    }

    #[test]
    fn the_name_of_a_container_is_one_that_engines_accept() {
        assert_eq!(container_name("/tmp/weighbridge-7.x/3", "listener"), "tmp-weighbridge-7-x-3-listener");
    }
}
