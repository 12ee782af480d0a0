/** The sandbox's `/etc/resolv.conf`: the machine's search domains and options (resolv.conf(5)) with another name server. */
export function privateResolvConf(machine: string, nameServer: string): string {
  const kept = machine.split("\n").filter((line) => /^(search|domain|options)[ \t]/.test(line));
  return [`nameserver ${nameServer}`, ...kept, ""].join("\n");
}
