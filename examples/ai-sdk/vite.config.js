import { defineConfig } from "vite";

const target = process.env.ANAMNESIS_URL ?? "http://127.0.0.1:8000";
// The key stays on this side of the browser.
const headers = process.env.ANAMNESIS_KEY ? { Authorization: `Bearer ${process.env.ANAMNESIS_KEY}` } : {};

export default defineConfig({
  esbuild: { jsx: "automatic" },
  server: { proxy: { "/api": { target, headers, changeOrigin: true } } },
});
