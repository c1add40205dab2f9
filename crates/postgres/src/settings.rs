//! The generated configuration: durable, and tuned for a queue.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::account::Account;
use crate::machine::{MB, Machine};
use crate::{Error, Installation, Options, Result};

/// Regenerated at each start, because memory and disk change.
const GENERATED: &str = "gleaner.conf";

/// Written once. The generated file is included first, so that a line the user adds below overrides it.
const POSTGRESQL_CONF: &str = "\
# Settings of this private PostgreSQL. Gleaner writes gleaner.conf anew at each start and never touches this file
# again: what you set below stays, and wins. Where the server listens is decided by `gleaner up` alone.
include 'gleaner.conf'
";

/// Only the owner can enter the socket directory, so any client that reaches the socket is trusted. TCP requires the password.
const PG_HBA_CONF: &str = "\
# TYPE  DATABASE     USER  ADDRESS       METHOD
local   all          all                 trust
local   replication  all                 trust
host    all          all   127.0.0.1/32  scram-sha-256
host    all          all   ::1/128       scram-sha-256
";

/// Writes the files that the user may edit, in a data directory just initialised.
pub(crate) fn write_initial(data: &Path, account: &Account) -> Result<()> {
    for (name, text) in [("postgresql.conf", POSTGRESQL_CONF), ("pg_hba.conf", PG_HBA_CONF)] {
        let path = data.join(name);
        fs::write(&path, text).map_err(Error::io("write", &path))?;
        account.give(&path)?;
    }
    Ok(())
}

/// Writes the generated file.
pub(crate) fn write_generated(data: &Path, account: &Account, installation: &Installation, options: &Options) -> Result<()> {
    let path = data.join(GENERATED);
    let includes = fs::read_to_string(data.join("postgresql.conf")).is_ok_and(|text| text.contains(GENERATED));
    if !includes {
        tracing::warn!(file = %data.join("postgresql.conf").display(), "no longer includes {GENERATED}; the tuned settings are not in force");
    }
    let supported = Supported::ask(data, account, installation)?;
    let text = render(Machine::measure(data), options, supported);
    fs::write(&path, text).map_err(Error::io("write", &path))?;
    account.give(&path)
}

/// What depends on how this PostgreSQL was built.
#[derive(Debug, Clone, Copy)]
struct Supported {
    lz4: bool,
    syncfs: bool,
}

impl Supported {
    /// Runs the server itself on the settings: the only check that is right for every build.
    fn ask(data: &Path, account: &Account, installation: &Installation) -> Result<Self> {
        let (lz4, syncfs) = ("wal_compression=lz4", "recovery_init_sync_method=syncfs");
        // The file is included, so it must exist.
        let path = data.join(GENERATED);
        if !path.exists() {
            fs::write(&path, "").map_err(Error::io("write", &path))?;
            account.give(&path)?;
        }
        let accepts = |settings: &[&str]| {
            let mut command = account.command(installation.program("postgres"), data);
            command.args(["-C", "wal_level", "-D"]).arg(data);
            for setting in settings {
                command.args(["-c", setting]);
            }
            command.output().is_ok_and(|output| output.status.success())
        };
        // Most builds support both, and one check is faster than two.
        if accepts(&[lz4, syncfs]) {
            return Ok(Self { lz4: true, syncfs: true });
        }
        Ok(Self { lz4: accepts(&[lz4]), syncfs: accepts(&[syncfs]) })
    }
}

fn render(machine: Machine, options: &Options, Supported { lz4, syncfs }: Supported) -> String {
    let share = |part: u64, least: u64, most: u64| (machine.memory / part / MB).clamp(least, most);
    let mb = |size: u64| format!("{size}MB");
    let wal = (machine.free_disk / 8 / MB).clamp(128, if options.durable { 8192 } else { 1024 });
    let switch = |on: bool| if on { "on" } else { "off" }.to_owned();

    let mut settings: Vec<(&str, &[(&str, String)])> = Vec::new();
    let durability = [
        ("fsync", switch(options.durable)),
        ("synchronous_commit", "on".to_owned()),
        ("full_page_writes", switch(options.durable)),
        // After a crash one flush of the file system instead of one per file, where the system supports it.
        ("recovery_init_sync_method", if syncfs { "syncfs" } else { "fsync" }.to_owned()),
    ];
    settings.push(("What is committed stays committed.", &durability));

    let wal_settings = [
        // Logical from the start: the change feed needs it, and changing it later needs a restart.
        ("wal_level", "logical".to_owned()),
        ("max_wal_size", mb(wal)),
        ("min_wal_size", mb((wal / 8).max(80))),
        ("checkpoint_timeout", "15min".to_owned()),
        ("checkpoint_completion_target", "0.9".to_owned()),
        ("wal_compression", if lz4 { "lz4" } else { "on" }.to_owned()),
        ("default_toast_compression", if lz4 { "lz4" } else { "pglz" }.to_owned()),
        // A forgotten replication slot must not fill the disk.
        ("max_slot_wal_keep_size", mb(wal)),
    ];
    settings.push(("Write-ahead log: few checkpoints, bounded by the disk.", &wal_settings));

    let memory = [
        ("shared_buffers", mb(share(8, 64, if options.durable { 1024 } else { 256 }))),
        ("effective_cache_size", mb(share(2, 128, 1024 * 1024))),
        ("maintenance_work_mem", mb(share(32, 32, 512))),
        ("work_mem", mb(share(512, 4, 32))),
        ("max_connections", options.max_connections.to_string()),
        ("random_page_cost", "1.1".to_owned()),
        ("jit", "off".to_owned()),
    ];
    settings.push(("Memory and plans: short statements on solid-state disks.", &memory));

    let vacuum = [
        ("autovacuum", "on".to_owned()),
        ("autovacuum_naptime", "10s".to_owned()),
        ("autovacuum_vacuum_scale_factor", "0.02".to_owned()),
        ("autovacuum_vacuum_threshold", "500".to_owned()),
        ("autovacuum_vacuum_insert_scale_factor", "0.05".to_owned()),
        ("autovacuum_analyze_scale_factor", "0.02".to_owned()),
        ("autovacuum_vacuum_cost_delay", "1ms".to_owned()),
        ("autovacuum_vacuum_cost_limit", "2000".to_owned()),
    ];
    settings.push(("A queue leaves a dead row per act: clean up early and often.", &vacuum));

    let rest = [
        ("cluster_name", "gleaner".to_owned()),
        ("timezone", "UTC".to_owned()),
        ("log_timezone", "UTC".to_owned()),
        ("lc_messages", "C".to_owned()),
        ("unix_socket_permissions", "0700".to_owned()),
        ("password_encryption", "scram-sha-256".to_owned()),
        // The user has the same name as the engine's schema: with the default path a user's `create table` would create tables in
        // there.
        ("search_path", "public".to_owned()),
    ];
    settings.push(("Everything else.", &rest));

    let mut text = String::from("# Written by Gleaner at each start. Your own settings belong into postgresql.conf.\n");
    for (why, group) in settings {
        let _ = writeln!(text, "\n# {why}");
        for (name, value) in group {
            let _ = writeln!(text, "{name} = '{value}'");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{MB, Machine, Supported, render};
    use crate::{Home, Options};

    fn rendered(memory: u64, free_disk: u64) -> String {
        let options = Options::new(Home::at("/nowhere").expect("a home"));
        let machine = Machine { memory: memory * MB, free_disk: free_disk * MB };
        render(machine, &options, Supported { lz4: true, syncfs: true })
    }

    #[test]
    fn a_large_machine_is_used_and_a_small_one_is_spared() {
        let large = rendered(64 * 1024, 1024 * 1024);
        assert!(large.contains("shared_buffers = '1024MB'") && large.contains("max_wal_size = '8192MB'"), "{large}");
        let small = rendered(1024, 4096);
        assert!(small.contains("shared_buffers = '128MB'") && small.contains("max_wal_size = '512MB'"), "{small}");
    }
}
