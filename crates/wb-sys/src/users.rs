use crate::SysRoot;

/// The name of a user of this machine, or the number if the machine's own list does not have it.
pub fn name(root: &SysRoot, user: u32) -> String {
    let number = user.to_string();
    let passwd = root.text("/etc/passwd").unwrap_or_default();
    let mut entries = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let entry = entries.find(|fields| fields.get(2).is_some_and(|id| *id == number));
    entry.and_then(|fields| fields.first().map(|name| (*name).to_owned())).unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_root::FakeRoot;

    #[test]
    fn a_user_without_an_entry_is_its_number() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\n+\nanna:x:1000:100::/home/anna:/bin/sh\n";
        let fake = FakeRoot::new().file("/etc/passwd", passwd);
        assert_eq!([0, 1000, 100].map(|user| name(&fake.root(), user)), ["root", "anna", "100"]);
        assert_eq!(name(&FakeRoot::new().root(), 7), "7");
    }
}
