/** This machine's architecture, as the OCI image specification spells it. */
export function machineArchitecture(): string {
  return process.arch === "x64" ? "amd64" : process.arch;
}
