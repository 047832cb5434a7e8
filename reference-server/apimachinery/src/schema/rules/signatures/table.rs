//! The table of the functions that expressions may call.

/// One overload on each line: the receiver and a dot for a method, the types of the arguments, the
/// type of the result. `A` and `B` are type variables, and `O` is each type with an order.
pub(super) const TABLE: &str = "
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
    type(A) type(A)
    bool(bool) bool
    bool(string) bool
    int(int) int
    int(uint) int
    int(double) int
    int(string) int
    int(timestamp) int
    int(duration) int
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
    duration(int) duration
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
    optional.none() optional(A)
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
    list(O).isSorted() bool
    list(int).sum() int
    list(uint).sum() uint
    list(double).sum() double
    list(duration).sum() duration
    list(O).min() O
    list(O).max() O
    list(A).indexOf(A) int
    list(A).lastIndexOf(A) int
    list(A).slice(int, int) list(A)
    list(A).distinct() list(A)
    list(A).reverse() list(A)
    list(O).sort() list(O)
    list(A).@sortByAssociatedKeys(list(O)) list(A)
    list(list(A)).flatten() list(A)
    list(dyn).flatten(int) list(dyn)
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
    string.format(list(dyn)) string
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
pub(super) const NAMESPACES: [&str; 7] =
    ["format", "ip", "jsonpatch", "lists", "optional", "sets", "strings"];

/// The types that Kubernetes adds to CEL.
pub(super) const KINDS: [&str; 11] = [
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
