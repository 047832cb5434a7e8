//! The signatures of the functions and operators that expressions may call.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::types::Type;

/// One overload on each line: the receiver and a dot for a method, the types of the arguments, the
/// type of the result. `A` and `B` are type variables.
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
    bool(bool) bool
    bool(string) bool
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
    timestamp(int) timestamp
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
    timestamp.getFullYear(string) int
    timestamp.getMonth(string) int
    timestamp.getDate(string) int
    timestamp.getDayOfMonth(string) int
    timestamp.getDayOfWeek(string) int
    timestamp.getDayOfYear(string) int
    timestamp.getHours(string) int
    timestamp.getMinutes(string) int
    timestamp.getSeconds(string) int
    timestamp.getMilliseconds(string) int
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
    optional.unwrap(list(optional(A))) list(A)
    list(optional(A)).unwrapOpt() list(A)
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
    list(list(A)).flatten() list(A)
    list(A).flatten(int) list(dyn)
    list(A).first() optional(A)
    list(A).last() optional(A)
    lists.range(int) list(int)
    @mapInsert(map(A, B), A, B) map(A, B)
    @mapInsert(map(A, B), map(A, B)) map(A, B)
    jsonpatch.escapeKey(string) string
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
    sign(Quantity) int
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
    isSemver(string) bool
    isSemver(string, bool) bool
    semver(string) Semver
    semver(string, bool) Semver
    Semver.isGreaterThan(Semver) bool
    Semver.isLessThan(Semver) bool
    Semver.compareTo(Semver) int
    Semver.major() int
    Semver.minor() int
    Semver.patch() int
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
    Authorizer.path(string) PathCheck
    Authorizer.group(string) GroupCheck
    Authorizer.serviceAccount(string, string) Authorizer
    GroupCheck.resource(string) ResourceCheck
    ResourceCheck.subresource(string) ResourceCheck
    ResourceCheck.namespace(string) ResourceCheck
    ResourceCheck.name(string) ResourceCheck
    ResourceCheck.fieldSelector(string) ResourceCheck
    ResourceCheck.labelSelector(string) ResourceCheck
    ResourceCheck.check(string) Decision
    PathCheck.check(string) Decision
    Decision.allowed() bool
    Decision.reason() string
    Decision.errored() bool
    Decision.error() string
";

/// The names before the dot of functions that are not methods.
const NAMESPACES: [&str; 7] = ["format", "ip", "jsonpatch", "lists", "optional", "sets", "strings"];

/// The types that Kubernetes adds to CEL.
const KINDS: [&str; 11] = [
    "Authorizer",
    "CIDR",
    "Decision",
    "Format",
    "GroupCheck",
    "IP",
    "PathCheck",
    "Quantity",
    "ResourceCheck",
    "Semver",
    "URL",
];

/// The types of the language whose values can be null.
const NULLABLE: [&str; 2] = ["duration", "timestamp"];

/// The types with an order.
const ORDERED: [&str; 8] =
    ["bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration"];
/// Numbers of different types are comparable.
const NUMBERS: [&str; 3] = ["int", "uint", "double"];

/// The type that a signature requires of an argument.
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

/// The overloads of each function. Methods have a dot before their name.
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

/// Reports whether there is a function or, with a dot before the name, a method of this name.
pub(super) fn is_function(name: &str) -> bool {
    OVERLOADS.contains_key(name)
}

/// Returns the type of a call. The error is a message about an unknown function or unsuitable
/// arguments.
pub(super) fn call<'s>(name: &str, arguments: &[Type<'s>]) -> Result<Type<'s>, String> {
    let shown = name.trim_start_matches('.');
    let overloads =
        OVERLOADS.get(name).ok_or_else(|| format!("undeclared reference to '{shown}'"))?;
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
        let all = self
            .parameters
            .iter()
            .zip(arguments)
            .all(|(pattern, ty)| pattern.accepts(ty, &mut bound));
        all.then(|| self.result.resolve(&bound))
    }
}

impl Pattern {
    fn accepts<'s>(&self, ty: &Type<'s>, bound: &mut HashMap<char, Type<'s>>) -> bool {
        match (self, ty) {
            (Self::Any(name), ty) => {
                let before = bound.remove(name);
                let agrees = before.as_ref().is_none_or(|before| before.agrees(ty));
                bound.insert(
                    *name,
                    before.map_or_else(|| ty.clone(), |before| before.join_item(ty.clone())),
                );
                agrees
            }
            (_, Type::Any | Type::Dyn) | (Self::Optional(_), Type::Null) => true,
            (Self::Simple(name), Type::Null) => NULLABLE.contains(name) || KINDS.contains(name),
            (Self::Simple(name), ty) => ty.to_string() == *name,
            (Self::List(item), Type::List(ty)) => item.accepts(ty, bound),
            (Self::Map(key, value), Type::Map(keys, values)) => {
                key.accepts(keys, bound) && value.accepts(values, bound)
            }
            (Self::Optional(inner), Type::Optional(ty)) => inner.accepts(ty, bound),
            _ => false,
        }
    }

    fn resolve<'s>(&self, bound: &HashMap<char, Type<'s>>) -> Type<'s> {
        match self {
            Self::Any(name) => bound.get(name).cloned().unwrap_or(Type::Dyn),
            Self::List(item) => Type::List(Box::new(item.resolve(bound))),
            Self::Map(key, value) => {
                Type::Map(Box::new(key.resolve(bound)), Box::new(value.resolve(bound)))
            }
            Self::Optional(inner) => Type::Optional(Box::new(inner.resolve(bound))),
            Self::Simple(name) => match *name {
                "bool" => Type::Bool,
                "int" => Type::Int,
                "uint" => Type::Uint,
                "double" => Type::Double,
                "string" => Type::String,
                "bytes" => Type::Bytes,
                "timestamp" => Type::Timestamp,
                "duration" => Type::Duration,
                "type" => Type::Meta,
                name if KINDS.contains(&name) => Type::Kind(name),
                _ => Type::Dyn,
            },
        }
    }
}

/// Parses one line of the table.
fn read(line: &'static str) -> (String, Overload) {
    let (head, result) = line.rsplit_once(") ").unwrap_or((line, "dyn"));
    // The last parenthesis at the lowest depth opens the list of arguments.
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
mod tests;
