//! The agent on a worker: its protocol, its server, and the Worker handle
