/** A coding agent that uses `bough mcp`: the SDK's client, which starts the server. */
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import type { RequestOptions } from "@modelcontextprotocol/sdk/shared/protocol.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";

interface ToolAnswer {
  /** The text of an error; otherwise all texts except the first, which is the result itself. */
  text: string;
  isError: boolean;
  /** The result, which the client has verified with its schema. */
  result: Record<string, unknown>;
}

export class Agent {
  readonly client = new Client({ name: "test", version: "1" });
  /** Everything that the server has sent. */
  received = "";
  stderr = "";

  static async start(
    words: readonly string[],
    cwd: string,
    environment: Record<string, string>,
  ): Promise<Agent> {
    const agent = new Agent();
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [join(import.meta.dir, "../../src/main.ts"), ...words],
      env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "", ...environment },
      cwd,
      stderr: "pipe",
    });
    transport.stderr?.on("data", (chunk) => {
      agent.stderr += String(chunk);
    });
    await agent.client.connect(transport);
    const { onmessage } = transport;
    transport.onmessage = (message) => {
      agent.received += `${JSON.stringify(message)}\n`;
      onmessage?.(message);
    };
    // The client verifies results with the schemas that it has listed.
    await agent.client.listTools();
    return agent;
  }

  async call(
    name: string,
    given: Record<string, unknown> = {},
    options: RequestOptions = {},
  ): Promise<ToolAnswer> {
    const answer = CallToolResultSchema.parse(
      await this.client.callTool({ name, arguments: given }, CallToolResultSchema, {
        timeout: 60_000,
        ...options,
      }),
    );
    const texts = answer.content.map((part) => (part.type === "text" ? part.text : ""));
    const isError = answer.isError === true;
    return { isError, text: texts.slice(isError ? 0 : 1).join("\n"), result: answer.structuredContent ?? {} };
  }

  /** Returns the result of a call. Throws if the call fails. */
  async resultOf(name: string, given: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    const { isError, text, result } = await this.call(name, given);
    if (isError) throw new Error(`${name}: ${text}`);
    return result;
  }

  close(): Promise<void> {
    return this.client.close();
  }
}
