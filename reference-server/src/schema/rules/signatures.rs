//! The functions and operators that expressions may call, and on what.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::types::Type;

/// One line an overload: a receiver with a dot if it is a method, the types of its arguments, the type of its result.
/// `A` and `B` stand for any type, the same one wherever they stand.
const TABLE: &str = "
    !_(bool) bool
    _&&_(bool, bool) bool
    _||_(bool, bool) bool
    @not_strictly_false(bool) bool
    _?_:_(bool, A, A) A
    _==_(A, A) bool
    _!=_(A, A) bool
    @in(A, list(A)) bool
    @in(A, map(A, B)) bool
    _[_](list(A), int) A
    _[_](map(A, B), A) B
    _[_](optional(list(A)), int) optional(A)
    _[_](optional(map(A, B)), A) optional(B)
    _[?_](list(A), int) optional(A)
    _[?_](map(A, B), A) optional(B)
    _[?_](optional(list(A)), int) optional(A)
    _[?_](optional(map(A, B)), A) optional(B)
    -_(int) int
    -_(double) double
    _+_(int, int) int
    _+_(uint, uint) uint
    _+_(double, double) double
    _+_(string, string) string
    _+_(bytes, bytes) bytes
    _+_(list(A), list(A)) list(A)
    _+_(timestamp, duration) timestamp
    _+_(duration, timestamp) timestamp
    _+_(duration, duration) duration
    _-_(int, int) int
    _-_(uint, uint) uint
    _-_(double, double) double
    _-_(timestamp, timestamp) duration
    _-_(timestamp, duration) timestamp
    _-_(duration, duration) duration
    _*_(int, int) int
    _*_(uint, uint) uint
    _*_(double, double) double
    _/_(int, int) int
    _/_(uint, uint) uint
    _/_(double, double) double
    _%_(int, int) int
    _%_(uint, uint) uint
    size(string) int
    size(bytes) int
    size(list(A)) int
    size(map(A, B)) int
    string.size() int
    bytes.size() int
    list(A).size() int
    map(A, B).size() int
    dyn(A) dyn
    type(A) type
    int(int) int
    int(uint) int
    int(double) int
    int(string) int
    int(timestamp) int
    uint(uint) uint
    uint(int) uint
    uint(double) uint
    uint(string) uint
    double(double) double
    double(int) double
    double(uint) double
    double(string) double
    string(string) string
    string(bool) string
    string(int) string
    string(uint) string
    string(double) string
    string(bytes) string
    string(timestamp) string
    string(duration) string
    bytes(string) bytes
    bytes(bytes) bytes
    timestamp(string) timestamp
    timestamp(timestamp) timestamp
    duration(string) duration
    duration(duration) duration
    timestamp.getFullYear() int
    timestamp.getMonth() int
    timestamp.getDate() int
    timestamp.getDayOfMonth() int
    timestamp.getDayOfWeek() int
    timestamp.getDayOfYear() int
    timestamp.getHours() int
    timestamp.getMinutes() int
    timestamp.getSeconds() int
    timestamp.getMilliseconds() int
    duration.getHours() int
    duration.getMinutes() int
    duration.getSeconds() int
    duration.getMilliseconds() int
    optional.of(A) optional(A)
    optional.ofNonZeroValue(A) optional(A)
    optional.none() optional(dyn)
    optional(A).hasValue() bool
    optional(A).value() A
    optional(A).or(optional(A)) optional(A)
    optional(A).orValue(A) A
    string.startsWith(string) bool
    string.endsWith(string) bool
    string.contains(string) bool
    string.matches(string) bool
    matches(string, string) bool
    string.find(string) string
    string.findAll(string) list(string)
    string.findAll(string, int) list(string)
    string.charAt(int) string
    string.indexOf(string) int
    string.indexOf(string, int) int
    string.lastIndexOf(string) int
    string.lastIndexOf(string, int) int
    string.lowerAscii() string
    string.upperAscii() string
    string.trim() string
    string.replace(string, string) string
    string.replace(string, string, int) string
    string.split(string) list(string)
    string.split(string, int) list(string)
    string.substring(int) string
    string.substring(int, int) string
    list(string).join() string
    list(string).join(string) string
    list(A).isSorted() bool
    list(int).sum() int
    list(double).sum() double
    list(duration).sum() duration
    list(A).min() A
    list(A).max() A
    list(A).indexOf(A) int
    list(A).lastIndexOf(A) int
    list(A).slice(int, int) list(A)
    list(A).distinct() list(A)
    list(A).reverse() list(A)
    list(A).sort() list(A)
    list(A).@sortByAssociatedKeys(list(B)) list(A)
    sets.contains(list(A), list(A)) bool
    sets.equivalent(list(A), list(A)) bool
    sets.intersects(list(A), list(A)) bool
    isURL(string) bool
    isIP(string) bool
    isCIDR(string) bool
    isQuantity(string) bool
    string.format(list(A)) string
    strings.quote(string) string
    quantity(string) Quantity
    Quantity.sign() int
    Quantity.isInteger() bool
    Quantity.asInteger() int
    Quantity.asApproximateFloat() double
    Quantity.isLessThan(Quantity) bool
    Quantity.isGreaterThan(Quantity) bool
    Quantity.compareTo(Quantity) int
    Quantity.add(Quantity) Quantity
    Quantity.add(int) Quantity
    Quantity.sub(Quantity) Quantity
    Quantity.sub(int) Quantity
    url(string) URL
    URL.getScheme() string
    URL.getHost() string
    URL.getHostname() string
    URL.getPort() string
    URL.getEscapedPath() string
    URL.getQuery() map(string, list(string))
    ip(string) IP
    ip.isCanonical(string) bool
    string(IP) string
    IP.family() int
    IP.isUnspecified() bool
    IP.isLoopback() bool
    IP.isLinkLocalMulticast() bool
    IP.isLinkLocalUnicast() bool
    IP.isGlobalUnicast() bool
    cidr(string) CIDR
    string(CIDR) string
    CIDR.containsIP(IP) bool
    CIDR.containsIP(string) bool
    CIDR.containsCIDR(CIDR) bool
    CIDR.containsCIDR(string) bool
    CIDR.ip() IP
    CIDR.masked() CIDR
    CIDR.prefixLength() int
    format.named(string) optional(Format)
    format.dns1123Label() Format
    format.dns1123Subdomain() Format
    format.dns1035Label() Format
    format.dns1123LabelPrefix() Format
    format.dns1123SubdomainPrefix() Format
    format.dns1035LabelPrefix() Format
    format.qualifiedName() Format
    format.labelValue() Format
    format.uri() Format
    format.uuid() Format
    format.byte() Format
    format.date() Format
    format.datetime() Format
    Format.validate(string) optional(list(string))
";

/// What stands before the dot of a function that is no method.
const NAMESPACES: [&str; 5] = ["format", "ip", "optional", "sets", "strings"];

/// The types that are more than those of the expression language.
const KINDS: [&str; 5] = ["CIDR", "Format", "IP", "Quantity", "URL"];

/// Types whose values have an order.
const ORDERED: [&str; 8] = ["bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration"];
/// Numbers are compared across their types.
const NUMBERS: [&str; 3] = ["int", "uint", "double"];

/// What a signature asks of one place.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Any(char),
    Simple(&'static str),
    List(Box<Pattern>),
    Map(Box<Pattern>, Box<Pattern>),
    Optional(Box<Pattern>),
}

struct Overload {
    parameters: Vec<Pattern>,
    result: Pattern,
}

/// The overloads of every function, methods under a name with a dot before it.
static OVERLOADS: LazyLock<HashMap<String, Vec<Overload>>> = LazyLock::new(|| {
    let mut overloads: HashMap<String, Vec<Overload>> = HashMap::new();
    for line in TABLE.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, overload) = read(line);
        overloads.entry(name).or_default().push(overload);
    }
    for name in ["_<_", "_<=_", "_>_", "_>=_"] {
        let pairs = ORDERED.iter().map(|one| (*one, *one));
        let mixed = NUMBERS.iter().flat_map(|one| NUMBERS.iter().map(move |other| (*one, *other)));
        let overload = |(left, right): (&'static str, &'static str)| Overload {
            parameters: vec![Pattern::Simple(left), Pattern::Simple(right)],
            result: Pattern::Simple("bool"),
        };
        let all = pairs.chain(mixed.filter(|(one, other)| one != other)).map(overload);
        overloads.entry(name.to_owned()).or_default().extend(all);
    }
    overloads
});

/// Whether there is a function (or with a dot before it: a method) of this name.
pub(super) fn is_function(name: &str) -> bool {
    OVERLOADS.contains_key(name)
}

/// The type of a call; an error in words if there is no such function, or not on such arguments.
pub(super) fn call<'s>(name: &str, arguments: &[Type<'s>]) -> Result<Type<'s>, String> {
    let shown = name.trim_start_matches('.');
    let overloads = OVERLOADS.get(name).ok_or_else(|| format!("undeclared reference to '{shown}'"))?;
    let results = overloads.iter().filter_map(|overload| overload.apply(arguments));
    results.reduce(Type::join).ok_or_else(|| {
        let types: Vec<String> = arguments.iter().map(Type::to_string).collect();
        format!("found no matching overload for '{shown}' applied to '({})'", types.join(", "))
    })
}

impl Overload {
    fn apply<'s>(&self, arguments: &[Type<'s>]) -> Option<Type<'s>> {
        if arguments.len() != self.parameters.len() {
            return None;
        }
        let mut bound = HashMap::new();
        let all = self.parameters.iter().zip(arguments).all(|(pattern, ty)| pattern.accepts(ty, &mut bound));
        all.then(|| self.result.resolve(&bound, grown(arguments)))
    }
}

/// The most units of what is made from all of these together.
fn grown(arguments: &[Type<'_>]) -> u64 {
    arguments.iter().map(Type::size).fold(0, u64::saturating_add)
}

impl Pattern {
    fn accepts<'s>(&self, ty: &Type<'s>, bound: &mut HashMap<char, Type<'s>>) -> bool {
        match (self, ty) {
            (Self::Any(name), ty) => {
                let before = bound.remove(name);
                let agrees = before.as_ref().is_none_or(|before| before.agrees(ty));
                bound.insert(*name, before.map_or_else(|| ty.clone(), |before| before.join_item(ty.clone())));
                agrees
            }
            (_, Type::Dyn | Type::Null) => true,
            (Self::Simple(name), ty) => ty.to_string() == *name,
            (Self::List(item), Type::List(ty, _)) => item.accepts(ty, bound),
            (Self::Map(key, value), Type::Map(keys, values, _)) => {
                key.accepts(keys, bound) && value.accepts(values, bound)
            }
            (Self::Optional(inner), Type::Optional(ty)) => inner.accepts(ty, bound),
            _ => false,
        }
    }

    fn resolve<'s>(&self, bound: &HashMap<char, Type<'s>>, size: u64) -> Type<'s> {
        match self {
            Self::Any(name) => bound.get(name).cloned().unwrap_or(Type::Dyn),
            Self::List(item) => Type::List(Box::new(item.resolve(bound, size)), size),
            Self::Map(key, value) => {
                Type::Map(Box::new(key.resolve(bound, size)), Box::new(value.resolve(bound, size)), size)
            }
            Self::Optional(inner) => Type::Optional(Box::new(inner.resolve(bound, size))),
            Self::Simple(name) => match *name {
                "bool" => Type::Bool,
                "int" => Type::Int,
                "uint" => Type::Uint,
                "double" => Type::Double,
                "string" => Type::String(size),
                "bytes" => Type::Bytes(size),
                "timestamp" => Type::Timestamp,
                "duration" => Type::Duration,
                "type" => Type::Meta,
                name if KINDS.contains(&name) => Type::Kind(name),
                _ => Type::Dyn,
            },
        }
    }
}

/// Reads one line of the table.
fn read(line: &'static str) -> (String, Overload) {
    let (head, result) = line.rsplit_once(") ").unwrap_or((line, "dyn"));
    // The list of arguments opens where its parenthesis is the last one at the lowest depth.
    let mut depth = 0_i32;
    let open = head.rfind(|c| {
        depth += i32::from(c == ')') - i32::from(c == '(');
        depth < 0
    });
    let (callee, arguments) = head.split_at(open.unwrap_or(head.len()));
    let mut parameters = patterns(arguments.trim_start_matches('('));
    let name = match callee.rsplit_once('.') {
        Some((receiver, method)) if !NAMESPACES.contains(&receiver) => {
            parameters.insert(0, pattern(receiver));
            format!(".{method}")
        }
        _ => callee.to_owned(),
    };
    (name, Overload { parameters, result: pattern(result) })
}

fn patterns(text: &'static str) -> Vec<Pattern> {
    let mut depth = 0_i32;
    let parts = text.split(move |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).map(pattern).collect()
}

fn pattern(text: &'static str) -> Pattern {
    let Some((outer, inner)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) else {
        return match text {
            "A" => Pattern::Any('A'),
            "B" => Pattern::Any('B'),
            simple => Pattern::Simple(simple),
        };
    };
    let mut inner = patterns(inner).into_iter();
    let mut next = || Box::new(inner.next().unwrap_or(Pattern::Simple("dyn")));
    match outer {
        "map" => Pattern::Map(next(), next()),
        "optional" => Pattern::Optional(next()),
        _ => Pattern::List(next()),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn list(item: Type<'static>) -> Type<'static> {
        Type::List(Box::new(item), 5)
    }

    #[rstest]
    #[case("_+_", vec![Type::Int, Type::Int], "int")]
    #[case("_+_", vec![Type::Dyn, Type::Dyn], "dyn")]
    #[case("_+_", vec![Type::Dyn, Type::Int], "int")]
    #[case("_+_", vec![list(Type::Dyn), list(Type::Bool)], "list(bool)")]
    #[case("_<_", vec![Type::Int, Type::Double], "bool")]
    #[case("_[_]", vec![list(Type::Bool), Type::Int], "bool")]
    #[case("_?_:_", vec![Type::Bool, Type::Int, Type::Int], "int")]
    #[case(".startsWith", vec![Type::String(3), Type::String(4)], "bool")]
    #[case(".max", vec![list(Type::Double)], "double")]
    #[case(".orValue", vec![Type::Optional(Box::new(Type::Int)), Type::Int], "int")]
    #[case("sets.contains", vec![list(Type::Int), list(Type::Int)], "bool")]
    #[case(".join", vec![list(Type::String(1)), Type::String(1)], "string")]
    fn calls(#[case] name: &str, #[case] arguments: Vec<Type<'static>>, #[case] expected: &str) {
        assert_eq!(call(name, &arguments).map(|ty| ty.to_string()).as_deref(), Ok(expected));
    }

    #[rstest]
    #[case("_+_", vec![Type::Int, Type::String(1)], "found no matching overload for '_+_' applied to '(int, string)'")]
    #[case("_==_", vec![Type::Int, Type::String(1)], "found no matching overload for '_==_' applied to '(int, string)'")]
    #[case(".startsWith", vec![Type::Int, Type::Int], "found no matching overload for 'startsWith' applied to '(int, int)'")]
    #[case("@in", vec![Type::Int, list(Type::Bool)], "found no matching overload for '@in' applied to '(int, list(bool))'")]
    #[case("shout", vec![], "undeclared reference to 'shout'")]
    fn mistakes(#[case] name: &str, #[case] arguments: Vec<Type<'static>>, #[case] expected: &str) {
        assert_eq!(call(name, &arguments).map(|ty| ty.to_string()), Err(expected.to_owned()));
    }
}
