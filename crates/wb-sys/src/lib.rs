//! What this machine is and does: facts, environment, processes, telemetry
