//! Where the two sides run.

use wb_model::{Facts, Placement};

/// The NUMA nodes of server and client, as pbench has them: below 0 is anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SideNodes {
    pub(crate) server: i32,
    pub(crate) client: i32,
}

impl SideNodes {
    /// Server's and client's placement on one worker: the cell's, on the CPUs of their nodes.
    pub(crate) fn placements(self, asked: &Placement, facts: &Facts) -> Result<(Placement, Placement), String> {
        Ok((self.server(asked, facts)?, self.client(asked, facts)?))
    }

    /// The server's, on a worker of these facts.
    pub(crate) fn server(self, asked: &Placement, facts: &Facts) -> Result<Placement, String> {
        place_on_node(self.server, asked, facts)
    }

    /// The client's.
    pub(crate) fn client(self, asked: &Placement, facts: &Facts) -> Result<Placement, String> {
        place_on_node(self.client, asked, facts)
    }
}

fn place_on_node(node: i32, asked: &Placement, facts: &Facts) -> Result<Placement, String> {
    let Ok(node) = u32::try_from(node) else { return Ok(asked.clone()) };
    if facts.nodes.iter().all(|known| known.id != node) {
        return Err(format!("there is no NUMA node {node} here"));
    }
    let allowed = |cpu: &u32| asked.cpus.is_empty() || asked.cpus.contains(cpu);
    let cpus: Vec<u32> = facts.cpus.iter().filter(|cpu| cpu.node == node).map(|cpu| cpu.id).filter(allowed).collect();
    if cpus.is_empty() {
        return Err(format!("NUMA node {node} has none of the CPUs that may be used"));
    }
    Ok(Placement { cpus, ..asked.clone() })
}

#[cfg(test)]
mod tests {
    use wb_model::Bytes;
    use wb_model::facts::{Cpu, Node};

    use super::*;

    #[test]
    fn a_side_runs_on_the_cpus_of_its_node_that_it_may_use() {
        let cpu = |id, node| Cpu { id, core: id, package: node, node };
        let node = |id| Node { id, cpus: Vec::new(), memory: Bytes(0) };
        let facts = Facts {
            cpus: vec![cpu(0, 0), cpu(1, 0), cpu(2, 1), cpu(3, 1)],
            nodes: vec![node(0), node(1), node(2)],
            ..Facts::default()
        };
        let asked = Placement { cpus: vec![1, 2], ..Placement::default() };
        let cpus = |server, client, asked: &Placement| {
            SideNodes { server, client }.placements(asked, &facts).map(|(server, client)| (server.cpus, client.cpus))
        };
        assert_eq!(cpus(-1, 1, &Placement::default()), Ok((vec![], vec![2, 3])));
        assert_eq!(cpus(0, 1, &asked), Ok((vec![1], vec![2])));
        assert_eq!(cpus(-1, 7, &asked).unwrap_err(), "there is no NUMA node 7 here");
        assert!(cpus(2, -1, &asked).unwrap_err().contains("none of the CPUs"));
    }
}
