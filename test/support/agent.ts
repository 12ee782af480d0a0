/** A coding agent's side of `bough mcp`: the SDK's own client, which starts the server and speaks to it. */
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import type { RequestOptions } from "@modelcontextprotocol/sdk/shared/protocol.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";

export interface ToolAnswer {
  /** The error's text; else all texts of the result but the result itself. */
  text: string;
  isError: boolean;
  /** As its schema says, which the client verifies. */
  result: Record<string, unknown>;
}

export class Agent {
  readonly client = new Client({ name: "test", version: "1" });
  /** All that the server has sent. */
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
    // The client verifies results by the schemas that it has seen.
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

  /** Of a call that has to succeed. */
  async resultOf(name: string, given: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    const { isError, text, result } = await this.call(name, given);
    if (isError) throw new Error(`${name}: ${text}`);
    return result;
  }

  close(): Promise<void> {
    return this.client.close();
  }
}
