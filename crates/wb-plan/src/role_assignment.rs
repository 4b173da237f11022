//! Assignment of workers to the roles of a test, from its arguments `on`, `server(s)` and `client(s)`.

use wb_diagnostics::{Diagnostic, suggest};
use wb_model::{Declaration, ParamValue, Roles, Topology, WorkerName};

use crate::{PlanWorkers, Request, SpannedParam};

/// The keyword for all workers, each separately.
const EACH: &str = "each";

#[derive(Debug, Default)]
pub(crate) struct RoleAssignment<'a> {
    on: Option<&'a SpannedParam>,
    servers: Option<&'a SpannedParam>,
    clients: Option<&'a SpannedParam>,
}

impl<'a> RoleAssignment<'a> {
    /// Splits the role arguments from the test's own parameters, which may have the same names; returns the rest.
    pub(crate) fn from_request(
        request: &'a Request,
        test: &Declaration,
    ) -> Result<(Self, Vec<&'a SpannedParam>), Diagnostic> {
        let mut assignment = Self::default();
        let mut rest = Vec::new();
        for given in &request.params {
            let slot = match given.name.as_str() {
                name if test.param(name).is_some() => None,
                "on" => Some(&mut assignment.on),
                "server" | "servers" => Some(&mut assignment.servers),
                "client" | "clients" => Some(&mut assignment.clients),
                _ => None,
            };
            match slot {
                None => rest.push(given),
                Some(slot @ None) => *slot = Some(given),
                Some(Some(_)) => {
                    let message = format!("`{}` is given twice", given.name);
                    return Err(Diagnostic::at(&request.source, given.name_span.clone(), message, "here again"));
                }
            }
        }
        assignment.on = assignment.on.or(request.default_on.as_ref());
        Ok((assignment, rest))
    }

    /// The named workers, or all; machine-dependent values are resolved from the facts of the first.
    pub(crate) fn participants(&self, request: &Request, workers: &PlanWorkers) -> Result<Vec<WorkerName>, Diagnostic> {
        let named =
            [self.clients, self.servers].into_iter().flatten().map(|given| resolve_workers(given, request, workers));
        let named: Vec<WorkerName> = named.collect::<Result<Vec<_>, _>>()?.concat();
        if named.is_empty() { self.eligible_workers(request, workers) } else { Ok(named) }
    }

    /// The roles of a test with this topology. `server` serves if the request names no servers.
    pub(crate) fn assign_roles(
        &self,
        request: &Request,
        sides: Topology,
        server: Option<&str>,
        workers: &PlanWorkers,
    ) -> Result<Vec<Roles>, Diagnostic> {
        let on = self.eligible_workers(request, workers)?;
        let Topology::ClientServer { servers: required } = sides else {
            if let Some(given) = self.servers.or(self.clients) {
                let message = format!("test `{}` takes no `{}`", request.test, given.name);
                return Err(Diagnostic::at(
                    &request.source,
                    given.name_span.clone(),
                    message,
                    "it runs on each worker separately",
                )
                .with_help("select its workers with `on=each` or `on=[a,b]`"));
            }
            return Ok(on.into_iter().map(|worker| Roles::single(worker, sides)).collect());
        };
        let of = |given: Option<&SpannedParam>| given.map(|given| resolve_workers(given, request, workers)).transpose();
        let without = |some: &[WorkerName]| -> Vec<WorkerName> {
            let rest: Vec<WorkerName> = on.iter().filter(|worker| !some.contains(worker)).cloned().collect();
            if rest.is_empty() { some.to_vec() } else { rest }
        };
        let servers = match (of(self.servers)?, server) {
            (None, Some(server)) => Some(resolve_server(server, request, workers)?),
            (given, _) => given,
        };
        let (servers, clients) = match (servers, of(self.clients)?) {
            (Some(servers), Some(clients)) => {
                self.reject_overlap(request, &servers, &clients, &without(&servers))?;
                (servers, clients)
            }
            (Some(servers), None) => (servers.clone(), without(&servers)),
            (None, Some(clients)) => (without(&clients), clients),
            // In order: servers first, leaving at least one client.
            (None, None) => {
                let serving = required.min(on.len().saturating_sub(1)).max(1);
                let servers = on[..serving].to_vec();
                (servers.clone(), without(&servers))
            }
        };
        let assignment =
            |worker: WorkerName| Roles { servers: servers.iter().cycle().take(required).cloned().collect(), worker };
        Ok(clients.into_iter().map(assignment).collect())
    }

    /// Refuses a worker that is both server and client beside others: its traffic with itself would be mixed with
    /// traffic over the network. A single worker may be both, which measures within it.
    fn reject_overlap(
        &self,
        request: &Request,
        servers: &[WorkerName],
        clients: &[WorkerName],
        others: &[WorkerName],
    ) -> Result<(), Diagnostic> {
        let both = clients.iter().find(|client| servers.contains(client));
        let (Some(both), Some(given)) = (both, self.clients) else { return Ok(()) };
        if servers == clients && clients.len() == 1 {
            return Ok(());
        }
        let message = format!("`{both}` would be both server and client of `{}`", request.test);
        let others = others.iter().filter(|other| !servers.contains(other)).map(WorkerName::as_str).collect::<Vec<_>>();
        let alternative = match others.as_slice() {
            [] => String::new(),
            others => format!("`clients=[{}]` measures from the others; ", others.join(",")),
        };
        Err(Diagnostic::at(&request.source, given.value.span.clone(), message, "a client that also serves")
            .with_help(format!("{alternative}`server={both},client={both}` measures within `{both}` alone")))
    }

    fn eligible_workers(&self, request: &Request, workers: &PlanWorkers) -> Result<Vec<WorkerName>, Diagnostic> {
        self.on.map_or_else(|| Ok(workers.names().cloned().collect()), |given| resolve_workers(given, request, workers))
    }
}

fn resolve_workers(
    given: &SpannedParam,
    request: &Request,
    workers: &PlanWorkers,
) -> Result<Vec<WorkerName>, Diagnostic> {
    let texts: Vec<String> = match given.value.value() {
        ParamValue::List(list) => list.iter().map(ToString::to_string).collect(),
        single => vec![single.to_string()],
    };
    let mut all = Vec::new();
    for text in texts {
        let found = match text.as_str() {
            EACH => Some(workers.names().cloned().collect()),
            text => workers.resolve(text),
        };
        all.extend(found.ok_or_else(|| unknown_worker(&text, given.value.span.clone(), request, workers))?);
    }
    let mut unique = Vec::new();
    all.into_iter().for_each(|worker| {
        if !unique.contains(&worker) {
            unique.push(worker);
        }
    });
    if unique.is_empty() {
        let message = format!("`{}` selects no worker", given.name);
        Err(Diagnostic::at(&request.source, given.value.span.clone(), message, "empty"))
    } else {
        Ok(unique)
    }
}

fn resolve_server(name: &str, request: &Request, workers: &PlanWorkers) -> Result<Vec<WorkerName>, Diagnostic> {
    workers.resolve(name).ok_or_else(|| unknown_worker(name, request.test_span.clone(), request, workers))
}

fn unknown_worker(text: &str, span: std::ops::Range<usize>, request: &Request, workers: &PlanWorkers) -> Diagnostic {
    let names = || workers.names().map(WorkerName::as_str).chain(workers.groups.keys().map(String::as_str));
    Diagnostic::at(&request.source, span, format!("unknown worker `{text}`"), "unknown")
        .with_suggestion(suggest(text, names()))
        .with_help(format!(
            "expected one of {}; `{EACH}` selects all; add workers with --hosts",
            names().collect::<Vec<_>>().join(", ")
        ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use wb_model::{Facts, Scope, TestName};

    use super::*;
    use crate::spec;

    fn test() -> Declaration {
        Declaration {
            name: TestName::new("t").unwrap(),
            summary: String::new(),
            version: 1,
            params: Vec::new(),
            scope: Scope::Sample,
            requires: Vec::new(),
        }
    }

    fn roles(text: &str, hosts: &[&str], sides: Topology) -> Result<Vec<String>, Diagnostic> {
        let name = |name: &&str| WorkerName::new(*name).unwrap();
        let workers = PlanWorkers {
            workers: hosts.iter().map(|host| (name(host), Ok(Facts::default()))).collect(),
            groups: BTreeMap::from([("last".to_owned(), hosts.iter().skip(1).map(name).collect())]),
            ..PlanWorkers::default()
        };
        let request = spec::parse(text).unwrap();
        let (assignment, rest) = RoleAssignment::from_request(&request, &test()).unwrap();
        assert!(rest.is_empty());
        let format_assignment = |assignment: Roles| {
            let servers: Vec<&str> = assignment.servers.iter().map(WorkerName::as_str).collect();
            if servers.is_empty() {
                assignment.worker.to_string()
            } else {
                format!("{}<{}", assignment.worker, servers.join("+"))
            }
        };
        Ok(assignment.assign_roles(&request, sides, None, &workers)?.into_iter().map(format_assignment).collect())
    }

    #[test]
    fn a_test_without_servers_is_measured_on_each_worker_or_on_those_named() {
        let on = |text: &str| roles(text, &["a", "b", "c"], Topology::Single).unwrap();
        assert_eq!(on("t"), ["a", "b", "c"]);
        assert_eq!(on("t:on=each"), ["a", "b", "c"]);
        assert_eq!(on("t:on=b"), ["b"]);
        assert_eq!(on("t:on=[c,a,c]"), ["c", "a"]);
        assert_eq!(on("t:on=last"), ["b", "c"]);
    }

    #[test]
    fn servers_and_clients_are_as_named_or_in_order() {
        let one = Topology::ClientServer { servers: 1 };
        let two = Topology::ClientServer { servers: 2 };
        let of = |text: &str, hosts: &[&str], sides| roles(text, hosts, sides).unwrap();
        assert_eq!(of("t", &["a"], two), ["a<a+a"]);
        assert_eq!(of("t", &["a", "b", "c"], one), ["b<a", "c<a"]);
        assert_eq!(of("t", &["a", "b", "c"], two), ["c<a+b"]);
        assert_eq!(of("t", &["a", "b"], two), ["b<a+a"]);
        assert_eq!(of("t:server=b", &["a", "b", "c"], one), ["a<b", "c<b"]);
        assert_eq!(of("t:client=a", &["a", "b", "c"], two), ["a<b+c"]);
        assert_eq!(of("t:server=a,clients=last", &["a", "b", "c"], one), ["b<a", "c<a"]);
        assert_eq!(of("t:server=a,client=a", &["a", "b", "c"], two), ["a<a+a"]);
        assert_eq!(of("t:on=[b,c]", &["a", "b", "c"], one), ["c<b"]);
    }

    #[test]
    fn a_worker_cannot_be_both_server_and_client_beside_others() {
        let refusal = |text: &str| {
            let error = roles(text, &["a", "b", "c"], Topology::ClientServer { servers: 1 }).unwrap_err();
            format!("{error}: {}", error.help().unwrap())
        };
        insta::assert_snapshot!(
            ["t:server=a,clients=each", "t:servers=[a,b],client=a", "t:servers=each,clients=each"].map(refusal).join("\n"),
            @r"
        `a` would be both server and client of `t`: `clients=[b,c]` measures from the others; `server=a,client=a` measures within `a` alone
        `a` would be both server and client of `t`: `clients=[c]` measures from the others; `server=a,client=a` measures within `a` alone
        `a` would be both server and client of `t`: `server=a,client=a` measures within `a` alone
        "
        );
    }

    #[test]
    fn tests_without_workers_use_those_of_the_plan() {
        let plan = crate::file::parse(
            "p.toml",
            "on = [\"c\", \"b\"]\n[[test]]\nname = \"t\"\n[[test]]\nname = \"t\"\non = \"a\"\n",
        );
        let name = |name: &str| WorkerName::new(name).unwrap();
        let all = ["a", "b", "c"].map(|host| (name(host), Ok(Facts::default())));
        let workers = PlanWorkers { workers: all.into(), ..PlanWorkers::default() };
        let declaration = test();
        let of = |request: &Request| {
            let (assignment, _) = RoleAssignment::from_request(request, &declaration).unwrap();
            let roles = assignment.assign_roles(request, Topology::Single, None, &workers).unwrap();
            roles.into_iter().map(|assignment| assignment.worker.to_string()).collect::<Vec<_>>()
        };
        let roles: Vec<_> = plan.unwrap().requests.iter().map(of).collect();
        assert_eq!(roles, [vec!["c", "b"], vec!["a"]]);
    }

    #[test]
    fn empty_and_unknown_workers_are_refused() {
        let message = |text: &str, sides| roles(text, &["alpha", "b"], sides).unwrap_err().to_string();
        assert_eq!(message("t:on=alpah", Topology::Single), "unknown worker `alpah`");
        assert_eq!(message("t:on=[]", Topology::Single), "`on` selects no worker");
        assert_eq!(message("t:server=b", Topology::Single), "test `t` takes no `server`");
        let request = spec::parse("t:server=a,servers=b").unwrap();
        assert_eq!(
            RoleAssignment::from_request(&request, &test()).unwrap_err().to_string(),
            "`servers` is given twice"
        );
    }
}
