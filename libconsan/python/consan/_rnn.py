"""ATen operators that have a CUDA kernel and no CPU kernel, on CPU tensors: the fused cells of LSTM and GRU.

A workspace is seen by the cell's own backward operator only: it holds the gates.
"""
import torch


def _biased(gates, bias):
    return gates if bias is None else gates + bias


def lstm_cell(input_gates, hidden_gates, cx, input_bias=None, hidden_bias=None):
    i, f, g, o = (_biased(input_gates, input_bias) + _biased(hidden_gates, hidden_bias)).chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat((i, f, g, o), 1)


def lstm_cell_backward(grad_hy, grad_cy, cx, cy, workspace, has_bias):
    if grad_hy is None and grad_cy is None:
        return None, None, None
    i, f, g, o = workspace.chunk(4, 1)
    tanh = cy.tanh()
    grad_hy = torch.zeros_like(cy) if grad_hy is None else grad_hy
    grad = grad_hy * o * (1 - tanh * tanh)
    if grad_cy is not None:
        grad = grad + grad_cy
    gates = torch.cat((grad * g * i * (1 - i), grad * cx * f * (1 - f), grad * i * (1 - g * g),
                       grad_hy * tanh * o * (1 - o)), 1)
    return gates, grad * f, gates.sum(0) if has_bias else None


def gru_cell(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
    ir, ii, in_ = _biased(input_gates, input_bias).chunk(3, 1)
    hr, hi, hn = _biased(hidden_gates, hidden_bias).chunk(3, 1)
    r, z = (ir + hr).sigmoid(), (ii + hi).sigmoid()
    n = (in_ + r * hn).tanh()
    return n + z * (hx - n), torch.cat((r, z, n, hx, hn), 1)


def gru_cell_backward(grad_hy, workspace, has_bias):
    r, z, n, hx, hn = workspace.chunk(5, 1)
    gn = grad_hy * (1 - z) * (1 - n * n)
    gz = grad_hy * (hx - n) * z * (1 - z)
    gr = gn * hn * r * (1 - r)
    gi, gh = torch.cat((gr, gz, gn), 1), torch.cat((gr, gz, gn * r), 1)
    return gi, gh, grad_hy * z, gi.sum(0) if has_bias else None, gh.sum(0) if has_bias else None


OPERATORS = {
    "_thnn_fused_lstm_cell": lstm_cell,
    "_thnn_fused_lstm_cell_backward_impl": lstm_cell_backward,
    "_thnn_fused_gru_cell": gru_cell,
    "_thnn_fused_gru_cell_backward": gru_cell_backward,
}
