//! `dray adbc`: makes the ADBC driver known to driver managers, and checks it.

mod library;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use self::library::Library;
use crate::failure::{EXIT_CODES, Failure};

/// The names that managers derive from `dray://`, `drays://` and `dray+unix://`.
const NAMES: [&str; 3] = ["dray", "drays", "dray+unix"];
const FILE: &str = "libadbc_driver_dray.so";

const EXAMPLES: &str = "\
Examples:
  dray adbc install
  dray adbc check";

const INSTALL_EXAMPLES: &str = "\
Managers then find the driver by the name dray, and by the uris dray://, drays:// and dray+unix://.

Examples:
  dray adbc install
  sudo dray adbc install --system
  dray adbc install --venv --library /opt/dray/libadbc_driver_dray.so";

const CHECK_EXAMPLES: &str = "\
Examples:
  dray adbc check
  dray adbc check --library /opt/dray/libadbc_driver_dray.so";

/// Install the ADBC driver, by which Python, R, Go, DuckDB and others read from Dray
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Install(Install),
    Check(Check),
}

/// Write the manifests by which driver managers find the driver
#[derive(Debug, Args)]
#[command(after_help = format!("{INSTALL_EXAMPLES}\n\n{EXIT_CODES}"))]
struct Install {
    /// For this user, in ~/.config/adbc/drivers (the default)
    #[arg(long, group = "place")]
    user: bool,
    /// For all users, in /etc/adbc/drivers
    #[arg(long, group = "place")]
    system: bool,
    /// For the active virtual environment of Python, in its etc/adbc/drivers
    #[arg(long, group = "place")]
    venv: bool,
    /// The driver [default: libadbc_driver_dray.so, as installed with this program]
    #[arg(long, value_name = "PATH")]
    library: Option<PathBuf>,
}

/// Load the driver as a manager does, and say what it is
#[derive(Debug, Args)]
#[command(after_help = format!("{CHECK_EXAMPLES}\n\n{EXIT_CODES}"))]
struct Check {
    /// The driver [default: libadbc_driver_dray.so, as installed with this program]
    #[arg(long, value_name = "PATH")]
    library: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let text = match &arguments.command {
        Command::Install(install) => install.run()?,
        Command::Check(check) => {
            let path = find(check.library.as_deref())?;
            load(&path)?;
            format!("{} works as an ADBC 1.1 driver\n", path.display())
        }
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|cause| Failure::output("standard output", &cause))
}

impl Install {
    fn run(&self) -> Result<String, Failure> {
        let library = find(self.library.as_deref())?;
        load(&library)?;
        let text = manifest(&library)?;
        let folder = self.folder()?;
        let unwritten = |path: &Path| {
            let name = path.display().to_string();
            move |cause: std::io::Error| Failure::output(&name, &cause)
        };
        std::fs::create_dir_all(&folder).map_err(unwritten(&folder))?;
        for name in NAMES {
            let path = folder.join(format!("{name}.toml"));
            std::fs::write(&path, &text).map_err(unwritten(&path))?;
        }
        Ok(format!(
            "{} in {} load {}\n",
            NAMES.map(|name| format!("{name}.toml")).join(", "),
            folder.display(),
            library.display()
        ))
    }

    /// Where managers look for manifests.
    fn folder(&self) -> Result<PathBuf, Failure> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        if self.system {
            return Ok(PathBuf::from("/etc/adbc/drivers"));
        }
        if self.venv {
            let environment = variable("VIRTUAL_ENV").ok_or_else(|| {
                Failure::Usage("no virtual environment is active (VIRTUAL_ENV is not set)".into())
            })?;
            return Ok(PathBuf::from(environment).join("etc/adbc/drivers"));
        }
        let configuration = variable("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config")));
        let configuration = configuration.ok_or_else(|| {
            Failure::Usage("there is no home folder (HOME is not set); use --system".into())
        })?;
        Ok(configuration.join("adbc/drivers"))
    }
}

/// The absolute path of the driver.
fn find(library: Option<&Path>) -> Result<PathBuf, Failure> {
    let path = match library {
        Some(path) => path.to_owned(),
        None => {
            let program = std::env::current_exe().and_then(std::fs::canonicalize);
            let program = program
                .map_err(|cause| Failure::Start(format!("can't find this program: {cause}")))?;
            installed(&program).unwrap_or_else(|| program.with_file_name(FILE))
        }
    };
    path.canonicalize().map_err(|cause| {
        let hint = if library.is_none() { " (name the driver by --library)" } else { "" };
        Failure::Usage(format!("no driver at {}: {cause}{hint}", path.display()))
    })
}

/// The driver that was built or installed with a program: beside it, or below the `lib` beside its
/// `bin`, where Debian has a folder for each architecture and pip one for each Python.
fn installed(program: &Path) -> Option<PathBuf> {
    let bin = program.parent()?;
    let lib = bin.parent()?.join("lib");
    let mut places = vec![bin.to_owned(), lib.clone()];
    let folders = std::fs::read_dir(lib).into_iter().flatten().flatten();
    let mut folders: Vec<_> = folders.map(|folder| folder.path()).collect();
    folders.sort();
    for within in ["dray", "site-packages/dray"] {
        places.extend(folders.iter().map(|folder| folder.join(within)));
    }
    places.into_iter().map(|place| place.join(FILE)).find(|path| path.is_file())
}

fn load(path: &Path) -> Result<(), Failure> {
    let checked = Library::open(path).and_then(|library| library.check());
    checked.map_err(|why| {
        Failure::Start(format!("{} is not a working ADBC driver: {why}", path.display()))
    })
}

/// The manifest for a driver. Managers take its path only if it is absolute.
fn manifest(library: &Path) -> Result<String, Failure> {
    let path = library.to_str().ok_or_else(|| {
        Failure::Usage(format!("the path {} is not UTF-8, as TOML demands", library.display()))
    })?;
    // A string of JSON is one of TOML.
    let path = serde_json::Value::from(path);
    let version = env!("CARGO_PKG_VERSION");
    Ok(format!(
        "# Written by `dray adbc install`.\n\
         manifest_version = 1\n\
         name = \"Dray\"\n\
         version = \"{version}\"\n\
         license = \"Apache-2.0\"\n\
         url = \"{}\"\n\
         \n\
         [ADBC]\n\
         version = \"1.1.0\"\n\
         \n\
         [Driver]\n\
         entrypoint = \"AdbcDriverDrayInit\"\n\
         shared = {path}\n",
        env!("CARGO_PKG_REPOSITORY")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_found_where_packages_put_them() {
        for place in
            ["bin", "lib", "lib/x86_64-linux-gnu/dray", "lib/python3.12/site-packages/dray"]
        {
            let root = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(root.path().join("lib/other")).unwrap();
            std::fs::create_dir_all(root.path().join(place)).unwrap();
            let driver = root.path().join(place).join(FILE);
            let program = root.path().join("bin/dray");
            assert_eq!(installed(&program), None);
            std::fs::write(&driver, "").unwrap();
            assert_eq!(installed(&program), Some(driver));
        }
    }

    #[test]
    fn paths_are_quoted() {
        let text = manifest(Path::new("/opt/a \"b\"\\c.so")).unwrap();
        assert!(text.contains("shared = \"/opt/a \\\"b\\\"\\\\c.so\"\n"), "{text}");
    }
}
