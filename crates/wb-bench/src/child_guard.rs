use std::process::Child;

/// A child process that is killed on drop.
pub(crate) struct ChildGuard(pub(crate) Child);

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // Killing fails if the process has exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
