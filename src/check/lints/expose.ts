import type { Dockerfile } from "../../dockerfile/instruction.ts";
import { type Finding, warn } from "../finding.ts";

/** ExposeProtoCasing, ExposeInvalidFormat. */
export function lintExpose({ instructions }: Dockerfile): Finding[] {
  return instructions.flatMap((instruction) => {
    if (instruction.name !== "EXPOSE") return [];
    return instruction.ports.flatMap((port) => {
      const findings: Finding[] = [];
      const protocol = port.slice(port.indexOf("/") + 1);
      if (port.includes("/") && !protocol.includes("$") && protocol !== protocol.toLowerCase()) {
        const message = `Defined protocol '${port}' in EXPOSE instruction should be lowercase`;
        findings.push(warn("ExposeProtoCasing", message, instruction));
      }
      if (withoutVariables(port).includes(":")) {
        const message = `EXPOSE instruction should not define an IP address or host-port mapping, found '${port}'`;
        findings.push(warn("ExposeInvalidFormat", message, instruction));
      }
      return findings;
    });
  });
}

/** Removes variables: the colon of `${PORT:-80}` is not that of a mapping. */
function withoutVariables(port: string): string {
  return port.replace(/\$\{[^}]*\}/g, "");
}
