//! Placement of client and server on NUMA nodes.

use wb_model::{Facts, Placement};

/// NUMA nodes of server and client, as in pbench: any if negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SideNodes {
    pub server: i32,
    pub client: i32,
}

impl SideNodes {
    /// Placements of server and client on one worker: the requested one, restricted to the CPUs of their nodes.
    pub fn placements(self, requested: &Placement, facts: &Facts) -> Result<(Placement, Placement), String> {
        Ok((place_on_node(self.server, requested, facts)?, place_on_node(self.client, requested, facts)?))
    }
}

/// The requested placement, restricted to the CPUs of a node.
pub(super) fn place_on_node(node: i32, requested: &Placement, facts: &Facts) -> Result<Placement, String> {
    let Ok(node) = u32::try_from(node) else { return Ok(requested.clone()) };
    if facts.nodes.iter().all(|existing| existing.id != node) {
        return Err(format!("no such NUMA node on this worker: {node}"));
    }
    let allowed = |cpu: &u32| requested.cpus.is_empty() || requested.cpus.contains(cpu);
    let cpus: Vec<u32> = facts.cpus.iter().filter(|cpu| cpu.node == node).map(|cpu| cpu.id).filter(allowed).collect();
    if cpus.is_empty() {
        return Err(format!("NUMA node {node} has none of the allowed CPUs"));
    }
    Ok(Placement { cpus, ..requested.clone() })
}

#[cfg(test)]
mod tests {
    use wb_model::Bytes;
    use wb_model::facts::{Cpu, Node};

    use super::*;

    #[test]
    fn a_side_runs_on_the_allowed_cpus_of_its_node() {
        let cpu = |id, node| Cpu { id, core: id, package: node, node };
        let node = |id| Node { id, cpus: Vec::new(), memory: Bytes(0) };
        let facts = Facts {
            cpus: vec![cpu(0, 0), cpu(1, 0), cpu(2, 1), cpu(3, 1)],
            nodes: vec![node(0), node(1), node(2)],
            ..Facts::default()
        };
        let requested = Placement { cpus: vec![1, 2], ..Placement::default() };
        let cpus = |server, client, requested: &Placement| {
            SideNodes { server, client }
                .placements(requested, &facts)
                .map(|(server, client)| (server.cpus, client.cpus))
        };
        assert_eq!(cpus(-1, 1, &Placement::default()), Ok((vec![], vec![2, 3])));
        assert_eq!(cpus(0, 1, &requested), Ok((vec![1], vec![2])));
        assert_eq!(cpus(-1, 7, &requested).unwrap_err(), "no such NUMA node on this worker: 7");
        assert!(cpus(2, -1, &requested).unwrap_err().contains("none of the allowed CPUs"));
    }
}
