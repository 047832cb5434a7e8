//! The commands that the shell runs itself.

use super::run::{Shell, Stop};
use crate::runtime::files::resolve;

impl Shell {
    /// Runs a shell builtin. Returns none for any other command.
    pub(super) async fn builtin(&mut self, args: &[String]) -> Result<Option<i32>, Stop> {
        let number = |index: usize, otherwise: i32| {
            args.get(index).map_or(Some(otherwise), |text| text.parse().ok())
        };
        let code = match args[0].as_str() {
            ":" => 0,
            "break" => return Err(Stop::Break),
            "continue" => return Err(Stop::Continue),
            "exit" => {
                if let Some(code) = number(1, self.status) {
                    return Err(Stop::Exit(code & 0xff));
                }
                self.complain(&format!("exit: Illegal number: {}", args[1])).await?;
                return Err(Stop::Exit(super::SYNTAX));
            }
            "cd" => self.change_directory(args.get(1)).await?,
            "export" => self.export(&args[1..]),
            "unset" => {
                for name in &args[1..] {
                    self.variables.remove(name);
                }
                0
            }
            "read" => self.read(&args[1..]).await?,
            "wait" => {
                self.background.wait().await;
                0
            }
            "set" => self.set_option(&args[1..]).await?,
            "shift" => self.shift(number(1, 1)),
            _ => return Ok(None),
        };
        Ok(Some(code))
    }

    async fn change_directory(&mut self, path: Option<&String>) -> Result<i32, Stop> {
        let home = self.variables.get("HOME").cloned().unwrap_or_else(|| "/".to_owned());
        let path = resolve(&self.program.directory, path.unwrap_or(&home));
        if !self.program.machine.files.is_directory(&path) {
            self.complain(&format!("cd: can't cd to {path}: No such file or directory")).await?;
            return Ok(2);
        }
        self.program.directory = path;
        Ok(0)
    }

    fn export(&mut self, args: &[String]) -> i32 {
        for arg in args {
            let name = match arg.split_once('=') {
                Some((name, value)) => {
                    self.variables.insert(name.to_owned(), value.to_owned());
                    name
                }
                None => arg,
            };
            self.exported.insert(name.to_owned());
        }
        0
    }

    async fn set_option(&mut self, args: &[String]) -> Result<i32, Stop> {
        match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["-e"] => self.exit_on_error = true,
            ["+e"] => self.exit_on_error = false,
            _ => {
                self.complain("set: only -e and +e are supported by this shell").await?;
                return Ok(2);
            }
        }
        Ok(0)
    }

    /// Drops the first positional parameters.
    fn shift(&mut self, count: Option<i32>) -> i32 {
        let count = count.and_then(|count| usize::try_from(count).ok());
        match count.filter(|count| *count <= self.positional.len()) {
            Some(count) => {
                self.positional.drain(..count);
                0
            }
            None => 1,
        }
    }

    /// `read [-r] NAME..` assigns the words of a line. The last name gets the rest.
    async fn read(&mut self, args: &[String]) -> Result<i32, Stop> {
        let names: Vec<&String> = args.iter().filter(|arg| *arg != "-r").collect();
        let line = self.program.io.stdin.line().await;
        let text = String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned();
        let mut rest = text.trim_matches([' ', '\t']);
        for (index, name) in names.iter().enumerate() {
            let (word, after) = if index + 1 < names.len() {
                rest.split_once([' ', '\t']).unwrap_or((rest, ""))
            } else {
                (rest, "")
            };
            self.variables.insert((*name).clone(), word.to_owned());
            rest = after.trim_start_matches([' ', '\t']);
        }
        Ok(i32::from(!line.ends_with(b"\n")))
    }
}
