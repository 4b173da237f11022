//! Who measures a cell: what is said of it with a test, `on`, `server(s)` and `client(s)`, and the teams that follow.

use wb_model::{Declaration, ParamValue, Roles, Topology, WorkerName};

use crate::suggestion::suggest;
use crate::{PlanError, PlanWorkers, Request, SpannedParam};

/// The word for all workers, each by itself.
const EACH: &str = "each";

/// What was said of who measures a test.
#[derive(Debug, Default)]
pub(crate) struct RoleAssignment<'a> {
    on: Option<&'a SpannedParam>,
    servers: Option<&'a SpannedParam>,
    clients: Option<&'a SpannedParam>,
}

impl<'a> RoleAssignment<'a> {
    /// Takes what is said of it out of what was given for a test, which may have parameters of the same names; the rest
    /// is left.
    pub(crate) fn from_request(
        request: &'a Request,
        test: &Declaration,
    ) -> Result<(Self, Vec<&'a SpannedParam>), PlanError> {
        let mut cast = Self::default();
        let mut rest = Vec::new();
        for given in &request.given {
            let place = match given.name.as_str() {
                name if test.param(name).is_some() => None,
                "on" => Some(&mut cast.on),
                "server" | "servers" => Some(&mut cast.servers),
                "client" | "clients" => Some(&mut cast.clients),
                _ => None,
            };
            match place {
                None => rest.push(given),
                Some(place @ None) => *place = Some(given),
                Some(Some(_)) => {
                    let message = format!("`{}` is given twice", given.name);
                    return Err(PlanError::at(&request.source, given.name_span.clone(), message, "here again"));
                }
            }
        }
        cast.on = cast.on.or(request.default_on.as_ref());
        Ok((cast, rest))
    }

    /// The workers that were named, or all; the first of them is asked what follows from the machine.
    pub(crate) fn participants(&self, request: &Request, workers: &PlanWorkers) -> Result<Vec<WorkerName>, PlanError> {
        let named =
            [self.clients, self.servers].into_iter().flatten().map(|given| resolve_workers(given, request, workers));
        let named: Vec<WorkerName> = named.collect::<Result<Vec<_>, _>>()?.concat();
        if named.is_empty() { self.eligible_workers(request, workers) } else { Ok(named) }
    }

    /// The teams that follow for a test of such sides.
    pub(crate) fn assign_roles(
        &self,
        request: &Request,
        sides: Topology,
        workers: &PlanWorkers,
    ) -> Result<Vec<Roles>, PlanError> {
        let on = self.eligible_workers(request, workers)?;
        let Topology::ClientServer { servers: wanted } = sides else {
            if let Some(given) = self.servers.or(self.clients) {
                let message = format!("`{}` has no server", request.test);
                return Err(PlanError::at(
                    &request.source,
                    given.name_span.clone(),
                    message,
                    "it runs on each by itself",
                )
                .with_help("`on=each` or `on=[a,b]` says which workers measure it"));
            }
            return Ok(on.into_iter().map(|worker| Roles::single(worker, sides)).collect());
        };
        let of = |given: Option<&SpannedParam>| given.map(|given| resolve_workers(given, request, workers)).transpose();
        let without = |some: &[WorkerName]| -> Vec<WorkerName> {
            let rest: Vec<WorkerName> = on.iter().filter(|worker| !some.contains(worker)).cloned().collect();
            if rest.is_empty() { some.to_vec() } else { rest }
        };
        let (servers, clients) = match (of(self.servers)?, of(self.clients)?) {
            (Some(servers), Some(clients)) => {
                self.reject_overlap(request, &servers, &clients, &without(&servers))?;
                (servers, clients)
            }
            (Some(servers), None) => (servers.clone(), without(&servers)),
            (None, Some(clients)) => (without(&clients), clients),
            // In order: servers first, and somebody has to be left who asks them.
            (None, None) => {
                let serving = wanted.min(on.len().saturating_sub(1)).max(1);
                let servers = on[..serving].to_vec();
                (servers.clone(), without(&servers))
            }
        };
        let team =
            |worker: WorkerName| Roles { servers: servers.iter().cycle().take(wanted).cloned().collect(), worker };
        Ok(clients.into_iter().map(team).collect())
    }

    /// Refuses a worker that is both server and client while others take part: its traffic with itself would be one
    /// figure with traffic over the network. One worker alone may be both, which measures within it.
    fn reject_overlap(
        &self,
        request: &Request,
        servers: &[WorkerName],
        clients: &[WorkerName],
        others: &[WorkerName],
    ) -> Result<(), PlanError> {
        let both = clients.iter().find(|client| servers.contains(client));
        let (Some(both), Some(given)) = (both, self.clients) else { return Ok(()) };
        if servers == clients && clients.len() == 1 {
            return Ok(());
        }
        let message = format!("`{both}` would be both server and client of `{}`", request.test);
        let others = others.iter().filter(|other| !servers.contains(other)).map(WorkerName::as_str).collect::<Vec<_>>();
        let apart = match others.as_slice() {
            [] => String::new(),
            others => format!("`clients=[{}]` measures from the others; ", others.join(",")),
        };
        Err(PlanError::at(&request.source, given.value.span.clone(), message, "a client that also serves")
            .with_help(format!("{apart}`server={both},client={both}` measures within `{both}` alone")))
    }

    fn eligible_workers(&self, request: &Request, workers: &PlanWorkers) -> Result<Vec<WorkerName>, PlanError> {
        self.on.map_or_else(|| Ok(workers.names().cloned().collect()), |given| resolve_workers(given, request, workers))
    }
}

/// The workers that a value names, one or a list.
fn resolve_workers(
    given: &SpannedParam,
    request: &Request,
    workers: &PlanWorkers,
) -> Result<Vec<WorkerName>, PlanError> {
    let texts: Vec<String> = match given.value.value() {
        ParamValue::List(list) => list.iter().map(ToString::to_string).collect(),
        one => vec![one.to_string()],
    };
    let mut all = Vec::new();
    for text in texts {
        let found = match text.as_str() {
            EACH => Some(workers.names().cloned().collect()),
            text => workers.resolve(text),
        };
        all.extend(found.ok_or_else(|| unknown_worker(&text, given, request, workers))?);
    }
    let mut once = Vec::new();
    all.into_iter().for_each(|worker| {
        if !once.contains(&worker) {
            once.push(worker);
        }
    });
    match once.is_empty() {
        false => Ok(once),
        true => {
            let message = format!("`{}` names no worker", given.name);
            Err(PlanError::at(&request.source, given.value.span.clone(), message, "nobody"))
        }
    }
}

fn unknown_worker(text: &str, given: &SpannedParam, request: &Request, workers: &PlanWorkers) -> PlanError {
    let known = || workers.names().map(WorkerName::as_str).chain(workers.groups.keys().map(String::as_str));
    let label = suggest(text, known()).map_or("unknown".to_owned(), |near| format!("did you mean `{near}`?"));
    PlanError::at(&request.source, given.value.span.clone(), format!("there is no worker `{text}`"), label).with_help(
        format!("there is {}, and `{EACH}` for all; --hosts brings others", known().collect::<Vec<_>>().join(", ")),
    )
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

    fn teams(text: &str, hosts: &[&str], sides: Topology) -> Result<Vec<String>, PlanError> {
        let name = |name: &&str| WorkerName::new(*name).unwrap();
        let workers = PlanWorkers {
            workers: hosts.iter().map(|host| (name(host), Ok(Facts::default()))).collect(),
            groups: BTreeMap::from([("last".to_owned(), hosts.iter().skip(1).map(name).collect())]),
            ..PlanWorkers::default()
        };
        let request = spec::parse(text).unwrap();
        let (cast, rest) = RoleAssignment::from_request(&request, &test()).unwrap();
        assert!(rest.is_empty());
        let shown = |team: Roles| {
            let servers: Vec<&str> = team.servers.iter().map(WorkerName::as_str).collect();
            if servers.is_empty() { team.worker.to_string() } else { format!("{}<{}", team.worker, servers.join("+")) }
        };
        Ok(cast.assign_roles(&request, sides, &workers)?.into_iter().map(shown).collect())
    }

    #[test]
    fn a_test_of_one_side_is_measured_on_each_or_where_it_is_said() {
        let on = |text: &str| teams(text, &["a", "b", "c"], Topology::Single).unwrap();
        assert_eq!(on("t"), ["a", "b", "c"]);
        assert_eq!(on("t:on=each"), ["a", "b", "c"]);
        assert_eq!(on("t:on=b"), ["b"]);
        assert_eq!(on("t:on=[c,a,c]"), ["c", "a"]);
        assert_eq!(on("t:on=last"), ["b", "c"]);
    }

    #[test]
    fn servers_and_clients_are_as_said_or_in_order() {
        let one = Topology::ClientServer { servers: 1 };
        let two = Topology::ClientServer { servers: 2 };
        let of = |text: &str, hosts: &[&str], sides| teams(text, hosts, sides).unwrap();
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
    fn a_worker_is_not_both_server_and_client_beside_others() {
        use miette::Diagnostic;
        let refused = |text: &str| {
            let error = teams(text, &["a", "b", "c"], Topology::ClientServer { servers: 1 }).unwrap_err();
            format!("{error}: {}", Diagnostic::help(&error).unwrap())
        };
        insta::assert_snapshot!(
            ["t:server=a,clients=each", "t:servers=[a,b],client=a", "t:servers=each,clients=each"].map(refused).join("\n"),
            @r"
        `a` would be both server and client of `t`: `clients=[b,c]` measures from the others; `server=a,client=a` measures within `a` alone
        `a` would be both server and client of `t`: `clients=[c]` measures from the others; `server=a,client=a` measures within `a` alone
        `a` would be both server and client of `t`: `server=a,client=a` measures within `a` alone
        "
        );
    }

    #[test]
    fn a_plan_names_the_workers_of_tests_that_name_none() {
        let plan = crate::file::parse(
            "p.toml",
            "on = [\"c\", \"b\"]\n[[test]]\nname = \"t\"\n[[test]]\nname = \"t\"\non = \"a\"\n",
        );
        let name = |name: &str| WorkerName::new(name).unwrap();
        let all = ["a", "b", "c"].map(|host| (name(host), Ok(Facts::default())));
        let workers = PlanWorkers { workers: all.into(), ..PlanWorkers::default() };
        let declaration = test();
        let of = |request: &Request| {
            let (cast, _) = RoleAssignment::from_request(request, &declaration).unwrap();
            let teams = cast.assign_roles(request, Topology::Single, &workers).unwrap();
            teams.into_iter().map(|team| team.worker.to_string()).collect::<Vec<_>>()
        };
        let teams: Vec<_> = plan.unwrap().requests.iter().map(of).collect();
        assert_eq!(teams, [vec!["c", "b"], vec!["a"]]);
    }

    #[test]
    fn nobody_and_the_unknown_are_told() {
        let told = |text: &str, sides| teams(text, &["alpha", "b"], sides).unwrap_err().to_string();
        assert_eq!(told("t:on=alpah", Topology::Single), "there is no worker `alpah`");
        assert_eq!(told("t:on=[]", Topology::Single), "`on` names no worker");
        assert_eq!(told("t:server=b", Topology::Single), "`t` has no server");
        let request = spec::parse("t:server=a,servers=b").unwrap();
        assert_eq!(
            RoleAssignment::from_request(&request, &test()).unwrap_err().to_string(),
            "`servers` is given twice"
        );
    }
}
