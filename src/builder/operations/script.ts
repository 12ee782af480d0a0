import type { InstanceRequest, NetworkMode } from "../../service/wire/instance.ts";
import { ownOperationNetwork } from "../commands/network.ts";

/** Runs a script of bough's own as root. The shell reads it from standard input, because arguments have a size limit. */
export function scriptFields(
  script: string,
  placed: Pick<InstanceRequest, "files">,
  { network, timeoutSeconds }: { network: NetworkMode; timeoutSeconds: number },
): Omit<InstanceRequest, "image"> {
  return {
    command: "sh",
    args: ["-s"],
    shell: false,
    stdin: { value: Buffer.from(script).toString("base64"), encoding: "base64" },
    cwd: "/",
    ...placed,
    timeout: timeoutSeconds,
    disposable: false,
    ...ownOperationNetwork(network),
  };
}
